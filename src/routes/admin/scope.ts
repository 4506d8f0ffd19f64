/** What confines an operator to its tenant. */
import type { Principal } from '../../access/principal.ts'
import type { FeaturePermission, OperatorCall } from './permissions.ts'

export interface TenantScope {
  readonly operator: Principal
  /** The call whose permission a refusal names. */
  readonly call: OperatorCall | FeaturePermission
  readonly tenantIssuers: ReadonlySet<string>
}
