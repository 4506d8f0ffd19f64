/** HTTP client for external policy decision points: one POST of JSON, one response of JSON. */

import * as z from 'zod/mini'
import { Unavailable } from '../../../errors.ts'
import { BodyRefused, boundedText } from '../../../http/bounded-text.ts'
import { JsonRefused, parseStrictJson } from '../../../http/strict-json.ts'
import { createCircuitBreaker } from '../../../isolate/circuit-breaker.ts'
import { createDeadlines } from '../../../isolate/deadline.ts'
import type { Fault } from '../../../problems/reasons.ts'
import { DEFAULT_AUTHORITY_TIMEOUT_MS } from '../../../validators/decision-points.ts'
import type { RelationAnswer } from '../decision-point.ts'
import type { DecisionPointOptions } from '../definition.ts'

export interface DecisionPointServerOptions extends DecisionPointOptions {
  /** Base URL, without a trailing slash. */
  readonly url: string
  /** Sent as `Authorization: Bearer`. Default: no token. */
  readonly token?: string | undefined
  /** Timeout of a call in milliseconds, including the retry and the response body. Default 250. */
  readonly timeoutMs?: number
  /** Default `Math.random`. */
  readonly random?: () => number
}

export type DecisionPointReply<Answer> =
  | { readonly kind: 'answered'; readonly answer: Answer }
  /** The server rejects this query. `code` is the `code` of its response, if it has one. */
  | { readonly kind: 'refused'; readonly code: string | undefined }

export type DecisionPointServer = ReturnType<typeof createDecisionPointServer>

/** A decision needs few; reasons and advice may add some. */
const MAX_ANSWER_BYTES = 65_536
const MAX_JSON_DEPTH = 16
/** The 4xx statuses that do not depend on the query: credentials, timeouts and rate limits. */
const OF_ALL_QUERIES: ReadonlySet<number> = new Set([401, 407, 408, 429])

const refusal = z.looseObject({ code: z.string() })

/** Answers without a version. `DENIED` also answers queries that the server's API cannot express. */
export const DENIED: RelationAnswer = { decision: { outcome: 'denied' }, version: 0 }
export const ALLOWED: RelationAnswer = { decision: { outcome: 'allowed' }, version: 0 }

const WITHOUT_TENANT = ''

/** Returns the entry of a tenant. The key '' is for callers without one, not for a tenant ''. */
export function findEntry<Entry>(
  entries: ReadonlyMap<string, Entry>,
  tenant: string | null,
): Entry | undefined {
  return tenant === WITHOUT_TENANT ? undefined : entries.get(tenant ?? WITHOUT_TENANT)
}

/**
 * Creates the client of one server. It does not follow redirects. It reads a response up to 64 KiB
 * after decompression, and rejects JSON with a duplicate name. A call without a response is sent a
 * second time at once. This is safe because queries have no side effects, and useful because a
 * server may close an idle connection just as it is used.
 *
 * Its circuit breaker counts calls without a usable response: no connection, a timeout, no JSON of
 * the right shape, redirects, 401, 407, 408, 429 and 5xx. Other 4xx count as responses. Otherwise a
 * caller who can choose parts of the query could open the breaker for all callers.
 */
export function createDecisionPointServer({
  url,
  token,
  timeoutMs = DEFAULT_AUTHORITY_TIMEOUT_MS,
  ...options
}: DecisionPointServerOptions) {
  const breaker = createCircuitBreaker({ name: 'authority', target: url, ...options })
  const deadlines = createDeadlines(timeoutMs)
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json',
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
  }

  async function sendTwice(path: string, body: string, signal: AbortSignal): Promise<Response> {
    const send = () =>
      fetch(url + path, {
        method: 'POST',
        headers,
        body,
        signal,
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
    /**
     * Returns `answered` for a 200 response that `schema` accepts, and `refused` for a status that
     * concerns only this query. Throws `Unavailable('authority')` for everything else. `path` is
     * below the URL.
     */
    async post<Answer>(
      path: string,
      body: object,
      schema: z.core.$ZodType<Answer>,
    ): Promise<DecisionPointReply<Answer>> {
      const entry = breaker.enter()
      const deadline = deadlines.start()
      try {
        const response = await sendTwice(path, JSON.stringify(body), deadline.signal)
        const reply = await readReply(response, schema)
        deadline.end(true)
        breaker.succeeded()
        return reply
      } catch (cause) {
        deadline.end(false)
        const fault = classifyFault(cause, deadline.signal)
        breaker.failed(entry, fault)
        throw new Unavailable('authority', fault, { cause })
      }
    },
  }
}

async function readReply<Answer>(
  response: Response,
  schema: z.core.$ZodType<Answer>,
): Promise<DecisionPointReply<Answer>> {
  const { status, body } = response
  if (status === 200) {
    const text = await boundedText(body, MAX_ANSWER_BYTES)
    const { data } = z.safeParse(schema, parseStrictJson(text, { maxDepth: MAX_JSON_DEPTH }))
    if (data === undefined) throw new Unavailable('authority', 'malformed')
    return { kind: 'answered', answer: data }
  }
  if (status < 400 || status > 499 || OF_ALL_QUERIES.has(status)) {
    await body?.cancel()
    throw new Unavailable('authority', 'refused')
  }
  return { kind: 'refused', code: readCode(await boundedText(body, MAX_ANSWER_BYTES)) }
}

function readCode(text: string): string | undefined {
  try {
    return refusal.safeParse(parseStrictJson(text, { maxDepth: MAX_JSON_DEPTH })).data?.code
  } catch {
    return undefined
  }
}

function classifyFault(cause: unknown, signal: AbortSignal): Fault {
  if (cause instanceof Unavailable) return cause.fault
  if (cause instanceof BodyRefused || cause instanceof JsonRefused) return 'malformed'
  return signal.aborted ? 'timeout' : 'unreachable'
}
