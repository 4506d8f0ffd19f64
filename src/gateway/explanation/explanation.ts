/** The explanation of one decision: each stage, what it read, and what it decided. */

import type { Principal } from '../../access/principal.ts'
import type { AuditEvent } from '../../audit/event.ts'

/**
 * - `passed`: the stage let the request pass.
 * - `refused`: the request is refused (4xx).
 * - `failed`: a dependency did not answer (5xx).
 * - `answered`: the stage has the response. The stage `proxy` forwards the request.
 */
export type StageOutcome = 'passed' | 'refused' | 'failed' | 'answered'

export interface ExplainedStage {
  readonly stage: string
  readonly outcome: StageOutcome
  /** What the stage read, by name. Contains no credential. */
  readonly read: Readonly<Record<string, unknown>>
  /** One sentence. */
  readonly why: string
}

/** The request that the origin would receive, without its body. */
export interface ForwardedRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** By lower-case name. The values of credentials are replaced. */
  readonly headers: Readonly<Record<string, string>>
}

export interface Explanation {
  readonly decision: AuditEvent['decision']
  readonly status: number
  /** Pattern of the route; null if no route matched. */
  readonly route: string | null
  /** `ok`, or the precise reason of the audit event. */
  readonly reason: string
  /** Reasons for which rules in observe mode would have refused the request. */
  readonly observed: readonly string[]
  /**
   * In the order of the pipeline. The last one has decided, unless `banOffenders` or `limitBody`
   * refuses as well: these replace the response of a later stage.
   */
  readonly stages: readonly ExplainedStage[]
  /** Null for a refused request. */
  readonly origin: ForwardedRequest | null
}

export interface ExplainedRequest {
  readonly request: Request
  /** The client address of the request. */
  readonly address: string
  /** The caller, in place of a credential. Default: the credential of `request`. */
  readonly caller: Principal | undefined
  /** Throws if the operator must not see a decision about this caller. Default: it sees every decision. */
  refuseActor?(actor: AuditEvent['actor']): void
}

/**
 * Port: explains a decision without a change of any state. Returns undefined for a path of the gateway
 * itself, which no policy decides.
 */
export type Explainer = (explained: ExplainedRequest) => Promise<Explanation | undefined>

/** Headers to the origin whose values are credentials. */
const SECRET_HEADERS = ['authorization', 'cookie', 'dpop', 'x-auth-assertion']
const NOT_SHOWN = '(present, not shown)'

/** Returns the headers without the values of credentials. */
function withoutSecrets(
  headers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const shown = { ...headers }
  for (const name of SECRET_HEADERS) if (shown[name] !== undefined) shown[name] = NOT_SHOWN
  return shown
}

/** Returns the explanation of the request that an audit event is about. */
export function createExplanation(
  { decision, status, route, reason, observed = [] }: AuditEvent,
  stages: readonly ExplainedStage[],
  origin: ForwardedRequest | undefined,
): Explanation {
  const forwarded = origin && {
    method: origin.method,
    path: origin.path,
    headers: withoutSecrets(origin.headers),
  }
  return { decision, status, route, reason, observed, stages, origin: forwarded ?? null }
}
