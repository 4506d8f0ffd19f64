/** The authorization server: `import { authorizationServer } from 'portcullis/authorization-server'`. */
import { createScopeOfRoles } from '../authorization/permissions.ts'
import type { FeatureParts, GatewayFeature } from '../gateway/features.ts'
import { tenantIssuersOf } from '../gateway/tenant-issuers.ts'
import {
  type AuthorizationServer,
  createAuthorizationServer,
} from '../oauth/authorization-server.ts'
import { createClientLogins } from '../oauth/redis/client-logins.ts'
import { createGrantStore } from '../oauth/redis/grant-store.ts'
import { createRevocations } from '../revocation/redis/revocations.ts'
import { metadataRoutes, oauthRoutes } from '../routes/oauth/routes.ts'
import { createReferenceStore } from '../tokens/redis/references.ts'
import { createRefreshFamilies } from '../tokens/redis/refresh-families.ts'
import { createRefreshTokens } from '../tokens/refresh-tokens.ts'
import type { SigningJwk } from '../tokens/signing-keys.ts'
import { createTokenIssuer } from '../tokens/token-issuer.ts'

/**
 * Returns the authorization server, for the policy's `features`: `/oauth/token`, `/oauth/revoke`,
 * `/oauth/introspect` and its metadata. They do not exist without `SIGNING_KEYS`.
 */
export function authorizationServer(): GatewayFeature {
  return {
    feature: 'authorizationServer',
    services(parts) {
      const { config, policy, proofs } = parts
      if (config.signingKeys === undefined) return {}
      const server = serverOf(parts, config.signingKeys.keys)
      const sendNonces = policy.tokens.dpopNonceRequired
      return {
        authorizationServer: {
          metadata: metadataRoutes(config.publicUrl),
          endpoints: oauthRoutes({ server, proofs, sendNonces }),
        },
      }
    },
  }
}

function serverOf(
  { config, policy, redis, verifier, authorizer, proofs, now }: FeatureParts,
  keys: SigningJwk[],
): AuthorizationServer {
  const { publicUrl: issuer, clients: configured } = config
  const references = createReferenceStore(redis)
  const { accessTokenSeconds, sessionSeconds, refreshGraceSeconds, exchangeLimits } = policy.tokens
  return createAuthorizationServer({
    issuer,
    keys,
    logins: createClientLogins({ redis, configured, publicUrl: issuer }),
    store: createGrantStore(redis),
    tokens: createTokenIssuer({
      keys,
      issuer,
      references,
      defaultTtlSeconds: accessTokenSeconds,
      now,
    }),
    refreshTokens: createRefreshTokens({
      store: createRefreshFamilies(redis),
      issuer,
      graceSeconds: refreshGraceSeconds,
      now,
    }),
    references,
    revoker: createRevocations(redis, now),
    verifier,
    dpop: proofs,
    scopeOfRoles: createScopeOfRoles(policy.roles),
    scopesHeldBy: authorizer.scopesHeldBy,
    tenantIssuers: tenantIssuersOf(policy, config),
    sessionSeconds,
    exchangeLimits,
    now,
  })
}
