/** The one way in which the gateway asks an external authority: a POST of JSON, one answer of JSON. */
import * as z from 'zod'
import { createCircuitBreaker } from '../../breakers/breaker.ts'
import type { Breakers } from '../../breakers/registry.ts'
import { type Fault, Unavailable } from '../../errors.ts'
import { DEFAULT_AUTHORITY_TIMEOUT_MS } from '../../validators/authority.ts'
import { BodyRefused, boundedText } from '../../validators/bounded-text.ts'
import { JsonRefused, parseStrictJson } from '../../validators/json.ts'
import { createDeadlines } from '../upstash/deadline.ts'

export interface AuthorityServerOptions {
  /** Without a trailing slash. */
  readonly url: string
  /** Sent as `Authorization: Bearer`. Default none. */
  readonly token?: string | undefined
  /** For a call, its repetition and the answer's body included. Default 250 ms. */
  readonly timeoutMs?: number
  /** From `createBreakers`. Default nobody watches. */
  readonly watch?: Breakers['watch'] | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  /** In [0, 1). Default `Math.random`. */
  readonly random?: () => number
}

/** What it said. */
export type AuthorityReply<Answer> =
  | { readonly kind: 'answered'; readonly answer: Answer }
  /** It takes no such question; `code` is the `code` of its answer, where that has one. */
  | { readonly kind: 'refused'; readonly code: string | undefined }

export interface AuthorityServer {
  /**
   * Posts `question` to `path` below the URL. Throws `Unavailable('authority')` for all but an answer
   * (200) that `schema` takes, and a status that is about the question alone.
   */
  ask<Answer>(
    path: string,
    question: object,
    schema: z.ZodType<Answer>,
  ): Promise<AuthorityReply<Answer>>
}

/** An answer is a word; reasons and advice beside it may be some more. */
const MAX_ANSWER_BYTES = 65_536
const MAX_JSON_DEPTH = 16
/** Of the 4xx, those that would be told whatever the question: credentials, time, too much. */
const OF_ALL_QUESTIONS: ReadonlySet<number> = new Set([401, 407, 408, 429])

const refusal = z.looseObject({ code: z.string() })

/**
 * Makes the client of one server. Redirects are not followed, an answer is read up to 64 KiB after
 * decompression, and JSON with a name twice is none. A call that got no answer is sent a second time at
 * once, for questions change nothing, and a server may close a connection just when it is used.
 *
 * Its breaker counts what no answer can be had of: no connection, none in time, no JSON of the right
 * shape, redirects, 401, 407, 408, 429 and 5xx. Other 4xx are answers to it: a caller who can choose what
 * is asked for must not shut the authority off for others. Nor does a deadline count that passed while
 * this isolate stood still.
 */
export function createAuthorityServer({
  url,
  token,
  timeoutMs = DEFAULT_AUTHORITY_TIMEOUT_MS,
  ...options
}: AuthorityServerOptions): AuthorityServer {
  const breaker = createCircuitBreaker({ name: 'authority', target: url, ...options })
  const deadlines = createDeadlines(timeoutMs)
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json',
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
  }

  async function post(path: string, body: string, signal: AbortSignal): Promise<Response> {
    const send = () =>
      fetch(url + path, {
        ...{ method: 'POST', headers, body, signal },
        redirect: 'manual',
        cache: 'no-store',
      })
    try {
      return await send()
    } catch (cause) {
      if (signal.aborted) throw cause
      return send()
    }
  }

  return {
    async ask(path, question, schema) {
      const entry = breaker.enter()
      const deadline = deadlines.start()
      try {
        const reply = await replyOf(
          await post(path, JSON.stringify(question), deadline.signal),
          schema,
        )
        deadline.end(true)
        breaker.succeeded()
        return reply
      } catch (cause) {
        const fault = faultOf(cause, deadline.signal)
        const isAlive = fault === 'refused' || fault === 'malformed'
        const isEvidence = deadline.end(isAlive) || fault !== 'timeout'
        if (isEvidence) breaker.failed(entry, fault)
        else breaker.abandoned(entry)
        throw new Unavailable('authority', fault, { cause })
      }
    },
  }
}

async function replyOf<Answer>(
  response: Response,
  schema: z.ZodType<Answer>,
): Promise<AuthorityReply<Answer>> {
  const { status, body } = response
  if (status === 200) {
    const text = await boundedText(body, MAX_ANSWER_BYTES)
    const { data } = schema.safeParse(parseStrictJson(text, { maxDepth: MAX_JSON_DEPTH }))
    if (data === undefined) throw new Unavailable('authority', 'malformed')
    return { kind: 'answered', answer: data }
  }
  if (status < 400 || status > 499 || OF_ALL_QUESTIONS.has(status)) {
    await body?.cancel()
    throw new Unavailable('authority', 'refused')
  }
  return { kind: 'refused', code: codeOf(await boundedText(body, MAX_ANSWER_BYTES)) }
}

function codeOf(text: string): string | undefined {
  try {
    return refusal.safeParse(parseStrictJson(text, { maxDepth: MAX_JSON_DEPTH })).data?.code
  } catch {
    return undefined
  }
}

function faultOf(cause: unknown, signal: AbortSignal): Fault {
  if (cause instanceof Unavailable) return cause.fault
  if (cause instanceof BodyRefused || cause instanceof JsonRefused) return 'malformed'
  return signal.aborted ? 'timeout' : 'unreachable'
}
