/** What every call of operators uses, also those that features add. */
import type { Authorizer } from '../../access/permissions.ts'
import type { Readmission } from '../../middleware/readmit.ts'
import type { PolicyLimit } from '../../policy/policy.ts'

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
  /** Milliseconds since the epoch. */
  readonly now: () => number
}
