/** The decision of the gateway about one request, as the policy tester reports it. */
import type { AuditEvent } from '../audit/event.ts'
import type { ProblemCode } from '../problems/problem.ts'

/** The request that the origin received. */
export interface OriginRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** By lower-case name, such as `x-auth-subject`. */
  readonly headers: Readonly<Record<string, string>>
  /** Empty without a body. */
  readonly body: string
}

interface Decided {
  readonly status: number
  /** Pattern of the route (`/orders/:id`); null if no route matched. */
  readonly route: string | null
  /** Host pattern of the route (`*.example.com`). Undefined: the route has none. */
  readonly host: string | undefined
  /** `ok`, or the precise reason that only the audit event has: `token_rejected:exp`. */
  readonly reason: string
  /** Reasons for which rules in observe mode would have refused the request. */
  readonly observed: readonly string[]
  /** The response that the caller gets. Its body has not been read. */
  readonly response: Response
}

export interface Allowed extends Decided {
  readonly allowed: true
  /** Undefined if the gateway itself responded, as for `/-/healthz`. */
  readonly origin: OriginRequest | undefined
}

export interface Refused extends Decided {
  readonly allowed: false
  /** `code` of the problem document. Undefined for HEAD: the response has no body. */
  readonly code: ProblemCode | undefined
  /** `detail` of the problem document. */
  readonly detail: string | undefined
}

/** Discriminated by `allowed`. */
export type Decision = Allowed | Refused

/**
 * Returns the decision from the response, the audit event of the request, and what the origin
 * received. Undefined: no event, or the request did not reach the origin.
 */
export async function readDecision(
  response: Response,
  event: AuditEvent | undefined,
  origin: OriginRequest | undefined,
): Promise<Decision> {
  const decided: Decided = {
    status: response.status,
    route: event?.route ?? null,
    host: event?.host,
    reason: event?.reason ?? (response.ok ? 'ok' : 'not_audited'),
    observed: event?.observed ?? [],
    response,
  }
  const isAllowed = event === undefined ? response.ok : event.decision === 'allow'
  if (isAllowed) return { allowed: true, ...decided, origin }
  const { code, detail } = await problemIn(response.clone())
  return { allowed: false, ...decided, code, detail }
}

async function problemIn(response: Response): Promise<Partial<Pick<Refused, 'code' | 'detail'>>> {
  const text = await response.text()
  return text === '' ? {} : JSON.parse(text)
}
