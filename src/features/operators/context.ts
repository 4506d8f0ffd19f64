/** What the operators' API uses: services, and facts about the gateway. */
import type { BanList } from '../../access/abuse/ban-record.ts'
import type { LimitControls, OverrideList } from '../../access/admission/limit-override.ts'
import type { ScopeUse } from '../../access/principal.ts'
import type { RevocationLog } from '../../access/revocation/record.ts'
import type { Revocations } from '../../access/revocation/revocation.ts'
import type { TokenIssuer } from '../../access/tokens/access-grant.ts'
import type { ApiKeys } from '../../access/tokens/api-key-record.ts'
import type { SigningJwk } from '../../access/tokens/signing-keys.ts'
import type { AuditErasures } from '../../audit/erasure.ts'
import type { AuditLog, ChainLog } from '../../audit/log.ts'
import type { OverflowRedaction } from '../../audit/overflow.ts'
import type { AuditUsage } from '../../audit/usage.ts'
import type { Explainer } from '../../gateway/explanation/explanation.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import type { CallFrame } from '../../routes/admin/frame.ts'
import type { ClientRegistry } from '../authorization-server/client.ts'
import type { GrantStore } from '../authorization-server/grant-store.ts'
import type { SecurityProfile } from '../authorization-server/schemas/client.ts'
import type { PlanAssignments, PlansOfKeys } from '../plans/assignment.ts'
import type { WaitUntilInForce } from './wait.ts'

export interface AdminContext extends CallFrame {
  readonly clients: ClientRegistry
  /** Returns the security profile of the authorization server. Undefined: none. */
  readonly serverProfile: () => SecurityProfile | undefined
  readonly apiKeys: ApiKeys
  readonly revocations: RevocationLog
  readonly waitUntilInForce: WaitUntilInForce
  readonly bulkRevocation: Pick<Revocations, 'revokeBefore'>
  readonly revocationFacts: GrantStore
  readonly bans: BanList
  readonly overrides: OverrideList
  readonly planAssignments: PlanAssignments
  readonly plansOfKeys: PlansOfKeys
  /** The permissions of all operators' calls, with those of features. */
  readonly operatorPermissions: readonly string[]
  /** The names of the roles of the policy. */
  readonly roles: readonly string[]
  readonly windows: Pick<LimitControls, 'reset'>
  /** Undefined, as the next three, if the gateway has no audit database. */
  readonly auditLog: AuditLog | undefined
  readonly chainLog: ChainLog | undefined
  readonly auditUsage: AuditUsage | undefined
  readonly auditErasures: AuditErasures | undefined
  readonly overflowRedaction: OverflowRedaction
  /** Undefined without signing keys. */
  readonly tokenIssuer: TokenIssuer | undefined
  readonly signingKeys: readonly SigningJwk[]
  readonly explain: Explainer
  /** Returns the effect of scopes in tokens of an issuer. */
  readonly scopeUseOf: (issuer: string) => ScopeUse | undefined
  readonly policyLimits: ReadonlyMap<string, PolicyLimit>
  /** How long a cutoff must be stored: the longest life of a token or session, and a margin. */
  readonly revokedBeforeSeconds: number
  /** How long the revocation of a single token must be stored. */
  readonly revokedTokenSeconds: number
}
