/** Which faults were on when, and what they can have caused. */
import { explainedBy, type FaultName, type FULL_LOAD, type Trouble } from './faults.ts'

/** Milliseconds since the epoch. */
export interface FaultWindow {
  readonly name: FaultName | typeof FULL_LOAD
  readonly startMs: number
  /** Undefined while it lasts. */
  endMs: number | undefined
  /** The gateway that was killed, where one was: 0 or 1. */
  readonly gateway?: number
  /** When something that this fault explains was last answered. */
  lastTroubleMs: number | undefined
  troubles: number
}

/** One request's life, and where it was sent. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
  readonly gateway: number
}

export interface Explanations {
  readonly windows: readonly FaultWindow[]
  begin(name: FaultWindow['name'], nowMs: number, gateway?: number): FaultWindow
  /** The fault that explains this trouble of a request, if there is one. */
  explain(trouble: Trouble, span: Span): FaultWindow | undefined
  /** Whether a fault was on, or had just ended, at any time of this span. */
  isTroubled(span: Span): boolean
}

export function createExplanations(): Explanations {
  const windows: FaultWindow[] = []

  function touches({ name, startMs, endMs }: FaultWindow, { fromMs, toMs }: Span): boolean {
    const untilMs =
      endMs === undefined ? Number.POSITIVE_INFINITY : endMs + explainedBy(name).recoveryMs
    return startMs <= toMs && fromMs <= untilMs
  }

  return {
    windows,
    begin(name, nowMs, gateway) {
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
    explain(trouble, span) {
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
    isTroubled: (span) => windows.some((window) => touches(window, span)),
  }
}
