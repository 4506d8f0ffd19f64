/** What the operators' API uses: services, and facts about the gateway. */

import { createBanList } from '../../access/abuse/redis/bans.ts'
import {
  createLimitControls,
  createOverrideList,
} from '../../access/admission/redis/limit-overrides.ts'
import { createRedisAdmissionStore } from '../../access/admission/redis/store.ts'
import type { ScopeUse } from '../../access/principal.ts'
import { createRevocationLog } from '../../access/revocation/redis/revocation-log.ts'
import { createRevocations } from '../../access/revocation/redis/revocations.ts'
import { createApiKeys } from '../../access/tokens/redis/api-keys.ts'
import { createReferenceStore } from '../../access/tokens/redis/references.ts'
import { createTokenIssuer } from '../../access/tokens/token-issuer.ts'
import { createOverflowRedaction } from '../../audit/redis/overflow.ts'
import { createAuditLog } from '../../audit/sql/audit-events.ts'
import { createChainLog } from '../../audit/sql/chain-log.ts'
import { trailOf } from '../../audit/sql/d1/database.ts'
import { createErasureOrders } from '../../audit/sql/erasure-orders.ts'
import { createAuditUsage } from '../../audit/sql/usage.ts'
import { createExplainer } from '../../gateway/explainer.ts'
import type { ExplainedRequest } from '../../gateway/explanation/explanation.ts'
import { type FeatureParts, listFeatures } from '../../gateway/feature.ts'
import { longestLifeSeconds } from '../../gateway/longest-life.ts'
import { listTenantIssuers } from '../../gateway/tenant-issuers.ts'
import { createReadmission } from '../../middleware/readmit.ts'
import { OPERATORS_LIMIT } from '../../policy/route.ts'
import type { CallFrame } from '../../routes/admin/frame.ts'
import { OPERATOR_PERMISSIONS } from '../../routes/admin/permissions.ts'
import { DEFAULT_SCOPE_USE } from '../../validators/issuer.ts'
import { SERVER_PROFILE } from '../authorization-server/client.ts'
import { createClientRegistry } from '../authorization-server/redis/clients.ts'
import { createGrantStore } from '../authorization-server/redis/grant-store.ts'
import { clientsOf } from '../authorization-server/schemas/client.ts'
import { createKeyPlanReader, createPlanAssignments } from '../plans/redis/assignments.ts'
import { createWait } from './wait.ts'

export type AdminContext = CallFrame & ReturnType<typeof createContext>

export function createContext(parts: FeatureParts, endedSeconds: number) {
  const { config, policy, redis, relationCheck, authorizer, admission, now } = parts
  const auditDb = parts.auditDb && trailOf(parts.auditDb)
  const { publicUrl } = config
  const clients = clientsOf(config)
  const signingKeys = config.signingKeys?.keys ?? []
  const operatorLimit = policy.limits.get(OPERATORS_LIMIT)
  const life = longestLifeSeconds(policy, config)
  return {
    publicUrl,
    authorizer,
    admitAgain: createReadmission({ admission, strict: true }),
    explain(explained: ExplainedRequest) {
      const { admissionStore: createStore = createRedisAdmissionStore } = parts
      const store = createStore(redis, relationCheck)
      const signs = config.signingKeys !== undefined
      const { contributions } = parts.contributed()
      return createExplainer({ core: parts, contributions, policy, store, signs })(explained)
    },
    /** Returns the effect of scopes in tokens of an issuer. */
    scopeUseOf: (issuer: string): ScopeUse | undefined =>
      config.issuers.find((trusted) => trusted.issuer === issuer)?.scopes ??
      (issuer === publicUrl ? undefined : DEFAULT_SCOPE_USE),
    policyLimits: policy.limits,
    operatorLimits: operatorLimit === undefined ? [] : [operatorLimit],
    // The gateway vouches for API keys, even without signing keys.
    tenantIssuers: listTenantIssuers(policy, config),
    issuers: [...new Set([...config.issuers.map(({ issuer }) => issuer), publicUrl])],
    /** Returns the security profile of the authorization server. Undefined: none. */
    serverProfile: () => SERVER_PROFILE.of(parts),
    clients: createClientRegistry({ redis, configured: clients, publicUrl, now }),
    apiKeys: createApiKeys({ redis, publicUrl, now, endedSeconds }),
    revocations: createRevocationLog(redis, now),
    waitUntilInForce: createWait(policy.revocation.maxStalenessMs),
    bulkRevocation: createRevocations(redis, now),
    revocationFacts: createGrantStore(redis),
    bans: createBanList(redis, now),
    overrides: createOverrideList(redis, now),
    planAssignments: createPlanAssignments(redis, now),
    plansOfKeys: createKeyPlanReader(redis, publicUrl),
    /** The permissions of all operators' calls, with those of features. */
    operatorPermissions: [
      ...OPERATOR_PERMISSIONS,
      ...listFeatures(policy).flatMap(({ permissions = [] }) => permissions),
    ],
    /** The names of the roles of the policy. */
    roles: [...policy.roles.keys()],
    windows: createLimitControls(redis, now),
    // Undefined, as the next three, if the gateway has no audit database.
    auditLog: auditDb === undefined ? undefined : createAuditLog(auditDb),
    auditUsage: auditDb === undefined ? undefined : createAuditUsage(auditDb),
    chainLog: auditDb === undefined ? undefined : createChainLog(auditDb),
    auditErasures: auditDb === undefined ? undefined : createErasureOrders(auditDb, now),
    overflowRedaction: createOverflowRedaction(redis),
    /** Undefined without signing keys. */
    tokenIssuer:
      config.signingKeys === undefined
        ? undefined
        : createTokenIssuer({
            keys: signingKeys,
            issuer: publicUrl,
            references: createReferenceStore(redis, now),
            defaultTtlSeconds: policy.tokens.accessTokenSeconds,
            now,
          }),
    signingKeys,
    /** How long a cutoff must be stored: the longest life of a token or session, and a margin. */
    revokedBeforeSeconds: life.access,
    /** How long the revocation of a single token must be stored. */
    revokedTokenSeconds: life.token,
    now,
  }
}
