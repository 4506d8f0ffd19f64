/** What confines an operator to its tenant. */
import type { Principal } from '../../access/principal.ts'
import type { OperatorCall } from './permissions.ts'

export interface TenantScope {
  readonly operator: Principal
  /** The call whose permission a refusal names. */
  readonly call: OperatorCall
  readonly tenantIssuers: ReadonlySet<string>
}
