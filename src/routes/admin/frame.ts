/** What every call of operators uses, also those that features add. */
import type { MiddlewareHandler } from 'hono'
import type { Authorizer } from '../../access/permissions.ts'
import type { TokenSources } from '../../access/tokens/token-sources.ts'
import type { Readmission } from '../../middleware/readmit.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import type { LoginDemand } from '../../problems/step-up.ts'

/** The stages that accept other callers than those with a token. */
export interface CallerStages {
  /** Come before the caller is known. */
  readonly arrival?: readonly MiddlewareHandler[]
  /** Wraps `authenticate`. */
  readonly identify?: (
    authenticate: MiddlewareHandler,
    sources: TokenSources | undefined,
  ) => MiddlewareHandler
  /** Come after the admission. */
  readonly admitted?: readonly MiddlewareHandler[]
}

export interface CallFrame {
  readonly publicUrl: string
  /** Identifiers of the trusted issuers. */
  readonly issuers: readonly string[]
  /** Issuers whose tenants are the gateway's tenants. */
  readonly tenantIssuers: ReadonlySet<string>
  /** The limits that count operators' requests. */
  readonly operatorLimits: readonly PolicyLimit[]
  readonly authorizer: Authorizer
  readonly admitAgain: Readmission
  /** Returns the stages that accept people with a browser session. Default: only tokens are accepted. */
  readonly acceptPeople?: ((changes: boolean) => CallerStages) | undefined
  /** What the login of a person must be for calls that change something. Default: any login. */
  readonly peopleDemand?: LoginDemand | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}
