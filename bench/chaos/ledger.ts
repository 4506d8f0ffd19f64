/** Records requests with their expected and actual outcomes, and the faults that explain failures. */
import type { Answer } from '../load/client.ts'
import type { Arrival } from './dependencies.ts'

/** `<status> <code>`; `cut` for an incomplete body, `none` for no response. */
export type Trouble = string

export interface Explained {
  readonly explains: readonly Trouble[]
  /** Returns for how long after its end the fault still explains failures, given its duration. */
  recoveryMs(lastedMs: number): number
}

/** The period of a fault, in milliseconds since the epoch. */
export interface FaultWindow {
  readonly name: string
  readonly startMs: number
  /** Undefined while the fault is active. */
  endMs: number | undefined
  /** The gateway that was killed, if any: 0 or 1. */
  readonly gateway?: number
  /** Time of the last response that this fault explains. */
  lastTroubleMs: number | undefined
  troubles: number
}

/** The start, end and gateway of one request. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
  readonly gateway: number
}

export type Explanations = ReturnType<typeof createExplanations>

/** Creates an empty record. `explainedBy` returns the failures that a fault explains. */
export function createExplanations(explainedBy: (name: string) => Explained) {
  const windows: FaultWindow[] = []

  function touches({ name, startMs, endMs }: FaultWindow, { fromMs, toMs }: Span): boolean {
    const untilMs =
      endMs === undefined
        ? Number.POSITIVE_INFINITY
        : endMs + explainedBy(name).recoveryMs(endMs - startMs)
    return startMs <= toMs && fromMs <= untilMs
  }

  return {
    windows: windows as readonly FaultWindow[],
    begin(name: string, nowMs: number, gateway?: number): FaultWindow {
      const window: FaultWindow = {
        name,
        startMs: nowMs,
        endMs: undefined,
        ...(gateway !== undefined && { gateway }),
        lastTroubleMs: undefined,
        troubles: 0,
      }
      windows.push(window)
      return window
    },
    /** Returns the fault that explains this failure of a request, if any. */
    explain(trouble: Trouble, span: Span): FaultWindow | undefined {
      const window = windows.findLast(
        (candidate) =>
          touches(candidate, span) &&
          explainedBy(candidate.name).explains.includes(trouble) &&
          (candidate.gateway === undefined || candidate.gateway === span.gateway),
      )
      if (window !== undefined) {
        window.troubles++
        window.lastTroubleMs = Math.max(window.lastTroubleMs ?? 0, span.toMs)
      }
      return window
    },
    /** Reports whether a fault was active, or had just ended, during this span. */
    isTroubled: (span: Span): boolean => windows.some((window) => touches(window, span)),
  }
}

export interface Expectation {
  readonly kind: string
  /** Statuses that are correct even during a fault. */
  readonly right: readonly number[]
  /** `no`: the request must never reach the origin, even during a fault. */
  readonly mayReachOrigin: 'yes' | 'no'
  /** The subject that the gateway must send to the origin; empty: none. */
  readonly subject: string
}

export interface Sent {
  readonly expectation: Expectation
  readonly method: string
  readonly gateway: number
  readonly sentMs: number
}

/** A request with a response, for the comparison with the audit trail. */
export interface Answered {
  readonly requestId: string
  readonly gateway: number
  readonly answeredMs: number
  readonly status: number
  readonly code: string
}

export type Verdict = 'right' | 'explained' | 'unexplained' | 'wrong_refusal' | 'wrong_accept'

export type Findings = ReturnType<Ledger['findings']>

export type Ledger = ReturnType<typeof createLedger>

const MAX_EXAMPLES = 20

export function createLedger(explanations: Explanations) {
  const sent: Sent[] = []
  const answered: Answered[] = []
  const arrivals: number[] = []
  const totals: Record<string, Record<string, number>> = {}
  const examples = {
    wrongAccepts: [] as string[],
    unexplained: [] as string[],
    wrongRefusals: [] as string[],
    /** Non-idempotent requests that reached the origin twice. */
    repeats: [] as string[],
  }
  const counts = { wrongAccepts: 0, unexplained: 0, wrongRefusals: 0, repeats: 0 }
  const answersOf: number[] = []
  let settled = 0

  function find(what: keyof typeof counts, text: string): void {
    counts[what]++
    if (counts[what] <= MAX_EXAMPLES) examples[what].push(text)
  }

  function verdictOf(number: number, answer: Answer, nowMs: number): Verdict {
    const { expectation, gateway, sentMs } = sent[number] as Sent
    const { status, isCut } = answer
    const says = `${new Date(sentMs).toISOString()} ${expectation.kind}: ${troubleOf(answer)} (${status === 0 ? answer.body : answer.requestId})`
    if (status >= 200 && status < 300) {
      if (expectation.mayReachOrigin === 'no') {
        find('wrongAccepts', `${says} answered`)
        return 'wrong_accept'
      }
      if (!isCut && expectation.right.includes(status)) return 'right'
    } else if (!isCut && expectation.right.includes(status)) return 'right'
    const span = { fromMs: sentMs, toMs: nowMs, gateway }
    if (explanations.explain(troubleOf(answer), span) !== undefined) return 'explained'
    if (status >= 200 && status < 500 && !isCut) {
      find('wrongRefusals', says)
      return 'wrong_refusal'
    }
    find('unexplained', says)
    return 'unexplained'
  }

  return {
    /** Records a request. Returns the number that it must carry. */
    open: (request: Sent): number => sent.push(request) - 1,
    settle(number: number, answer: Answer, nowMs: number): Verdict {
      settled++
      const { expectation, gateway } = sent[number] as Sent
      const { status, code, requestId } = answer
      if (requestId !== '') {
        answered.push({ requestId, gateway, answeredMs: nowMs, status, code })
        answersOf[gateway] = (answersOf[gateway] ?? 0) + 1
      }
      totals[expectation.kind] ??= {}
      const byAnswer = totals[expectation.kind] as Record<string, number>
      const trouble = troubleOf(answer)
      byAnswer[trouble] = (byAnswer[trouble] ?? 0) + 1
      return verdictOf(number, answer, nowMs)
    },
    arrive({ number, subject, method }: Arrival): void {
      const request = sent[number]
      if (request === undefined) {
        find('wrongAccepts', `an unknown request (${number}, ${method}) at the origin`)
        return
      }
      const { expectation } = request
      const before = arrivals[number] ?? 0
      arrivals[number] = before + 1
      if (expectation.mayReachOrigin === 'no')
        find('wrongAccepts', `${expectation.kind} ${number} at the origin`)
      else if (subject !== expectation.subject)
        find('wrongAccepts', `${expectation.kind} ${number} at the origin as "${subject}"`)
      if (before > 0 && method === 'POST')
        find('repeats', `${expectation.kind} ${number} at the origin ${before + 1} times`)
    },
    answered: (): readonly Answered[] => answered,
    answeredBy: (gateway: number) => answersOf[gateway] ?? 0,
    findings: () => ({ ...examples, counts: { ...counts } }),
    /** Returns the number of responses by kind of request, status and code. */
    totals: () => totals,
    inFlight: () => sent.length - settled,
  }
}

/** Describes an outcome: `503 dependency_unavailable`, `200`, `cut`, `none`. */
function troubleOf({ status, code, isCut }: Answer): Trouble {
  if (status === 0) return 'none'
  if (isCut) return 'cut'
  return code === '' ? String(status) : `${status} ${code}`
}
