/** What the operators' API works with, made of an environment. */
import { REVOCATION_MARGIN_SECONDS } from '../admission/revocation.ts'
import { createAuthorizer } from '../authorization/permissions.ts'
import type { Config } from '../config.ts'
import type { Policy } from '../policy.ts'
import type { AdminRelations } from '../routes/admin/stores.ts'
import type { AdminOptions } from '../routes/admin.ts'
import { createAuditLog } from '../stores/d1/audit-events.ts'
import { createChainLog } from '../stores/d1/chain-log.ts'
import { createErasureOrders } from '../stores/d1/erasure-orders.ts'
import { createApiKeys } from '../stores/upstash/api-keys.ts'
import { createBanList } from '../stores/upstash/bans.ts'
import { createClientRegistry } from '../stores/upstash/clients.ts'
import { createGrantStore } from '../stores/upstash/grant-store.ts'
import { createLimitControls } from '../stores/upstash/limit-overrides.ts'
import { createOverrideList } from '../stores/upstash/override-list.ts'
import { createReferenceStore } from '../stores/upstash/references.ts'
import type { RedisRest } from '../stores/upstash/rest.ts'
import { createRevocationLog } from '../stores/upstash/revocation-log.ts'
import { createRevocations } from '../stores/upstash/revocations.ts'
import { createSpillRedaction } from '../stores/upstash/spill-redaction.ts'
import { createTokenIssuer, MAX_ACCESS_TOKEN_SECONDS } from '../tokens/token-issuer.ts'

export interface AdminParts {
  readonly rest: RedisRest
  /** Undefined: the audit trail cannot be asked. */
  readonly auditDb: D1Database | undefined
  /** What the calls about a policy's relations work with. */
  readonly relations: (policy: Policy) => AdminRelations | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Makes the options of `adminCalls`; how long things live is partly the policy's to say. */
export function adminServices(config: Config, parts: AdminParts) {
  const { rest, auditDb, now, relations } = parts
  const { publicUrl, clients: configured } = config
  const signingKeys = config.signingKeys?.keys ?? []
  const longestToken = Math.max(
    MAX_ACCESS_TOKEN_SECONDS,
    ...config.issuers.map(({ maxTokenAge }) => maxTokenAge),
  )
  return (policy: Policy): AdminOptions => ({
    publicUrl,
    authorizer: createAuthorizer(policy.roles),
    // The gateway vouches for API keys, whether or not it has keys to sign with.
    issuers: [...new Set([...config.issuers.map(({ issuer }) => issuer), publicUrl])],
    clients: createClientRegistry({ rest, configured, publicUrl, now }),
    apiKeys: createApiKeys({ rest, publicUrl, now }),
    revocations: createRevocationLog(rest, now),
    cutOffs: createRevocations(rest, now),
    cutOffFacts: createGrantStore(rest),
    bans: createBanList(rest, now),
    overrides: createOverrideList(rest, now),
    windows: createLimitControls(rest, now),
    auditLog: auditDb === undefined ? undefined : createAuditLog(auditDb),
    chainLog: auditDb === undefined ? undefined : createChainLog(auditDb),
    auditErasures: auditDb === undefined ? undefined : createErasureOrders(auditDb, now),
    spillRedaction: createSpillRedaction(rest),
    relations: relations(policy),
    tokenIssuer:
      config.signingKeys === undefined
        ? undefined
        : createTokenIssuer({
            keys: signingKeys,
            issuer: publicUrl,
            references: createReferenceStore(rest, now),
            defaultTtlSeconds: policy.tokens.accessTokenSeconds,
            now,
          }),
    signingKeys,
    cutOffSeconds: Math.max(longestToken, policy.tokens.sessionSeconds) + REVOCATION_MARGIN_SECONDS,
    revokedTokenSeconds: longestToken + REVOCATION_MARGIN_SECONDS,
    now,
  })
}
