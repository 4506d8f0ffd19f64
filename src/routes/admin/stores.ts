/** Services that the operators' API uses. */
import type { BanList } from '../../abuse/ban-record.ts'
import type { OverrideList, WindowControls } from '../../admission/limit-override.ts'
import type { AuditErasures } from '../../audit/erasure.ts'
import type { AuditLog, ChainLog } from '../../audit/log.ts'
import type { OverflowRedaction } from '../../audit/overflow.ts'
import type { Authorizer } from '../../authorization/permissions.ts'
import type { ClientRegistry } from '../../oauth/client.ts'
import type { GrantStore } from '../../oauth/grant-store.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import type { PolicyDecisionPoint } from '../../relations/decision-point.ts'
import type { RelationModel } from '../../relations/model.ts'
import type { RelationTuples } from '../../relations/store.ts'
import type { ExplainingDecisionPoint } from '../../relations/trace.ts'
import type { BulkRevocation, RevocationLog } from '../../revocation/record.ts'
import type { TokenIssuer } from '../../tokens/access-grant.ts'
import type { ApiKeys } from '../../tokens/api-key.ts'
import type { SigningJwk } from '../../tokens/signing-keys.ts'

/** Services that the calls about relations use. */
export interface AdminRelations {
  readonly model: RelationModel
  /** Undefined if an external policy decision point stores the tuples. */
  readonly tuples: RelationTuples | undefined
  /** Decides without a cache. `explain` is undefined if it does not explain its decisions. */
  readonly decisionPoint: PolicyDecisionPoint & Partial<ExplainingDecisionPoint>
}

export interface AdminStores {
  readonly clients: ClientRegistry
  readonly apiKeys: ApiKeys
  readonly revocations: RevocationLog
  readonly bulkRevocation: BulkRevocation
  /** Reads cutoffs before a credential is issued. */
  readonly revocationFacts: GrantStore
  readonly bans: BanList
  readonly overrides: OverrideList
  readonly windows: WindowControls
  /** Undefined if the gateway has no audit database. */
  readonly auditLog: AuditLog | undefined
  /** Undefined if the gateway has no audit database. */
  readonly chainLog: ChainLog | undefined
  /** Undefined if the gateway has no audit database. */
  readonly auditErasures: AuditErasures | undefined
  readonly overflowRedaction: OverflowRedaction
  /** Undefined if the policy has no relations. */
  readonly relations: AdminRelations | undefined
  /** Undefined without signing keys. */
  readonly tokenIssuer: TokenIssuer | undefined
  readonly signingKeys: readonly SigningJwk[]
}

/** The services, and facts about the gateway. */
export interface AdminOptions extends AdminStores {
  /** Decides what operators may do, and what the credentials that they create may do. */
  readonly authorizer: Authorizer
  /** The gateway's own issuer identifier. */
  readonly publicUrl: string
  /** Identifiers of the trusted issuers. */
  readonly issuers: readonly string[]
  /** The tenant issuers: their tenants are the gateway's tenants. */
  readonly tenantIssuers: ReadonlySet<string>
  /** How long a cutoff must be stored: the longest life of a token or session, and a margin. */
  readonly revokedBeforeSeconds: number
  /** How long the revocation of a single token must be stored. */
  readonly revokedTokenSeconds: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** What every group of calls needs. */
export interface AdminContext extends AdminOptions {
  /** All limits of the policy. */
  readonly policyLimits: ReadonlyMap<string, PolicyLimit>
  /** The limits that count operators' requests. */
  readonly operatorLimits: readonly PolicyLimit[]
}
