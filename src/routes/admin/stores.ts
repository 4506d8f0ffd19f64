/** What the operators' API works with. */
import type { ChainLog } from '../../audit/chain-log.ts'
import type { AuditErasures } from '../../audit/erasure.ts'
import type { AuditLog } from '../../audit/log.ts'
import type { SpillRedaction } from '../../audit/spill.ts'
import type { Authorizer } from '../../authorization/permissions.ts'
import type { ClientRegistry } from '../../oauth/client.ts'
import type { GrantStore } from '../../oauth/grant-store.ts'
import type { ApiKeys } from '../../operators/api-key.ts'
import type { BanList } from '../../operators/ban.ts'
import type { OverrideList, WindowControls } from '../../operators/limit-override.ts'
import type { CutOffs, RevocationLog } from '../../operators/revocation.ts'
import type { RelationAuthority } from '../../relations/authority.ts'
import type { RelationModel } from '../../relations/model.ts'
import type { RelationTuples } from '../../relations/store.ts'
import type { ExplainingAuthority } from '../../relations/trace.ts'
import type { TokenIssuer } from '../../tokens/access-grant.ts'
import type { SigningJwk } from '../../tokens/signing-keys.ts'

/** What the calls about relations work with. */
export interface AdminRelations {
  readonly model: RelationModel
  /** Whose subjects and tenants the tuples are about. */
  readonly issuers: ReadonlySet<string>
  /** Undefined where an external authority keeps them. */
  readonly tuples: RelationTuples | undefined
  /** Decides, without a cache; `explain` is undefined where it does not tell how. */
  readonly authority: RelationAuthority & Partial<ExplainingAuthority>
}

export interface AdminStores {
  readonly clients: ClientRegistry
  readonly apiKeys: ApiKeys
  readonly revocations: RevocationLog
  readonly cutOffs: CutOffs
  /** What is cut off, before something is issued. */
  readonly cutOffFacts: GrantStore
  readonly bans: BanList
  readonly overrides: OverrideList
  readonly windows: WindowControls
  /** Undefined where the gateway has no database of it. */
  readonly auditLog: AuditLog | undefined
  /** The same. */
  readonly chainLog: ChainLog | undefined
  /** The same. */
  readonly auditErasures: AuditErasures | undefined
  readonly spillRedaction: SpillRedaction
  /** Undefined where the policy has none. */
  readonly relations: AdminRelations | undefined
  /** Undefined without signing keys. */
  readonly tokenIssuer: TokenIssuer | undefined
  readonly signingKeys: readonly SigningJwk[]
}

/** The same, and what is known of the gateway. */
export interface AdminOptions extends AdminStores {
  /** Decides over whom operators make, as over them. */
  readonly authorizer: Authorizer
  /** The gateway's own issuer identifier. */
  readonly publicUrl: string
  /** Identifiers of the trusted issuers. */
  readonly issuers: readonly string[]
  /**
   * How long a cut-off must be remembered: as long as any token or session lives, and a little
   * more.
   */
  readonly cutOffSeconds: number
  /** The same of a revoked token. */
  readonly revokedTokenSeconds: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
}
