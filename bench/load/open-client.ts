/** Sends the requests of an open load, and checks their responses. */
import { type Answer, createClient } from './client.ts'
import { isRight, isShed, type Question } from './questions.ts'

const TIMEOUT_MS = 10_000
const MAX_SHOWN = 5

/** A gateway and the requests to it, used in turn. */
export interface OpenTarget {
  /** Scheme, authority and path prefix. */
  readonly url: string
  readonly questions: readonly Question[]
}

export interface OpenClientOptions {
  readonly targets: readonly OpenTarget[]
  readonly maxOutstanding: number
  /** Counts 503 responses separately instead of failing. Default false. */
  readonly mayShed?: boolean
}

export function createOpenClient(options: OpenClientOptions) {
  const { targets, maxOutstanding, mayShed = false } = options
  const client = createClient({ maxSockets: maxOutstanding, timeoutMs: TIMEOUT_MS })
  const requests = targets.map(requestsOf)
  const wrong = new Map<string, number>()
  const shed: Record<string, number> = {}

  function isExpected({ url, question }: Prepared, answer: Answer): boolean {
    const { status, body, code, isCut } = answer
    if (!isCut && isRight(question, status, body)) return true
    if (!isCut && mayShed && isShed(status, body)) shed[code] = (shed[code] ?? 0) + 1
    else {
      const complaint = `${complaintOf(question, answer)} from ${url}`
      wrong.set(complaint, (wrong.get(complaint) ?? 0) + 1)
    }
    return false
  }

  return {
    /** Sends the next request of a target. Returns whether the response is the expected one. */
    async send(target: number): Promise<boolean> {
      const next = (requests[target] as () => Prepared)()
      const { method, headers, body } = next.question
      const answer = await client.send({ url: next.fullUrl, method, headers, body })
      return isExpected(next, answer)
    },
    /** Returns the 503 responses by code. Throws if a response was wrong or missing. */
    close(): Readonly<Record<string, number>> {
      client.close()
      const seen = [...wrong].slice(0, MAX_SHOWN).map(([what, times]) => `${times} ${what}`)
      if (seen.length > 0) throw new Error(`wrong responses: ${seen.join(', ')}`)
      return shed
    },
  }
}

function complaintOf({ status: expected }: Question, { status, body, isCut }: Answer): string {
  if (status === 0) return `failed (${body})`
  if (isCut) return 'incomplete'
  return status === expected ? 'with another body' : `with status ${status}`
}

interface Prepared {
  readonly url: string
  readonly fullUrl: string
  readonly question: Question
}

/** Returns a function that returns the requests of a target in turn, endlessly. */
function requestsOf({ url, questions }: OpenTarget): () => Prepared {
  const base = url.endsWith('/') ? url.slice(0, -1) : url
  const prepared = questions.map((question) => ({ url, fullUrl: base + question.path, question }))
  let next = 0
  return () => prepared[next++ % prepared.length] as Prepared
}
