/** Composes the services of the operators' API. */

import { createBanList } from '../abuse/redis/bans.ts'
import { createLimitControls, createOverrideList } from '../admission/redis/limit-overrides.ts'
import { createAuditLog } from '../audit/d1/audit-events.ts'
import { createChainLog } from '../audit/d1/chain-log.ts'
import { createErasureOrders } from '../audit/d1/erasure-orders.ts'
import { createOverflowRedaction } from '../audit/redis/overflow-redaction.ts'
import { createAuthorizer } from '../authorization/permissions.ts'
import { createClientRegistry } from '../oauth/redis/clients.ts'
import { createGrantStore } from '../oauth/redis/grant-store.ts'
import type { Policy } from '../policy/policy.ts'
import type { RedisRest } from '../redis/rest.ts'
import { createRevocationLog } from '../revocation/redis/revocation-log.ts'
import { createRevocations } from '../revocation/redis/revocations.ts'
import { REVOCATION_MARGIN_SECONDS } from '../revocation/revocation.ts'
import type { AdminOptions, AdminRelations } from '../routes/admin/stores.ts'
import { createApiKeys } from '../tokens/redis/api-keys.ts'
import { createReferenceStore } from '../tokens/redis/references.ts'
import { createTokenIssuer, MAX_ACCESS_TOKEN_SECONDS } from '../tokens/token-issuer.ts'
import type { Config } from '../validators/environment.ts'
import { tenantIssuersOf } from './tenant-issuers.ts'

export interface AdminParts {
  readonly rest: RedisRest
  /** Undefined: the audit trail cannot be queried. */
  readonly auditDb: D1Database | undefined
  /** Undefined if the policy has no relations. */
  readonly relations: AdminRelations | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Creates the services that the operators' API uses. */
export function adminServices(config: Config, policy: Policy, parts: AdminParts): AdminOptions {
  const { rest, auditDb, now, relations } = parts
  const { publicUrl, clients: configured } = config
  const signingKeys = config.signingKeys?.keys ?? []
  const longestToken = Math.max(
    MAX_ACCESS_TOKEN_SECONDS,
    ...config.issuers.map(({ maxTokenAge }) => maxTokenAge),
  )
  return {
    publicUrl,
    authorizer: createAuthorizer(policy.roles),
    // The gateway vouches for API keys, even without signing keys.
    tenantIssuers: tenantIssuersOf(policy, config),
    issuers: [...new Set([...config.issuers.map(({ issuer }) => issuer), publicUrl])],
    clients: createClientRegistry({ rest, configured, publicUrl, now }),
    apiKeys: createApiKeys({ rest, publicUrl, now }),
    revocations: createRevocationLog(rest, now),
    bulkRevocation: createRevocations(rest, now),
    revocationFacts: createGrantStore(rest),
    bans: createBanList(rest, now),
    overrides: createOverrideList(rest, now),
    windows: createLimitControls(rest, now),
    auditLog: auditDb === undefined ? undefined : createAuditLog(auditDb),
    chainLog: auditDb === undefined ? undefined : createChainLog(auditDb),
    auditErasures: auditDb === undefined ? undefined : createErasureOrders(auditDb, now),
    overflowRedaction: createOverflowRedaction(rest),
    relations,
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
    revokedBeforeSeconds:
      Math.max(longestToken, policy.tokens.sessionSeconds ?? 0) + REVOCATION_MARGIN_SECONDS,
    revokedTokenSeconds: longestToken + REVOCATION_MARGIN_SECONDS,
    now,
  }
}
