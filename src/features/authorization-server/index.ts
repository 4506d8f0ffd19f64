/** The authorization server: `import { authorizationServer } from 'portcullis/authorization-server'`. */
import { createScopeOfRoles } from '../../access/permissions.ts'
import { createRevocations } from '../../access/revocation/redis/revocations.ts'
import { createReferenceStore } from '../../access/tokens/redis/references.ts'
import { createRefreshFamilies } from '../../access/tokens/redis/refresh-families.ts'
import { createRefreshTokens } from '../../access/tokens/refresh-tokens.ts'
import type { SigningJwk } from '../../access/tokens/signing-keys.ts'
import { createTokenIssuer } from '../../access/tokens/token-issuer.ts'
import type { Feature, FeatureParts, PlacedApp } from '../../gateway/feature.ts'
import { listTenantIssuers } from '../../gateway/tenant-issuers.ts'
import { createAuthorizationServer } from './authorization-server.ts'
import { CODE_FLOW } from './code-flow.ts'
import type { AuthorizationServerOptions } from './options.ts'
import { createClientLogins } from './redis/client-logins.ts'
import { createGrantStore } from './redis/grant-store.ts'
import { metadataRoutes, oauthRoutes } from './routes/routes.ts'
import { clientsOf, clientVariables } from './schemas/client.ts'
import { routesAt } from './target.ts'

/**
 * Returns the authorization server, for the policy's `features`: `/oauth/token`, `/oauth/revoke`,
 * `/oauth/introspect` and its metadata. They do not exist without `SIGNING_KEYS`.
 */
export function authorizationServer(): Feature {
  return {
    name: 'authorizationServer',
    variables: clientVariables,
    create(parts) {
      const { signingKeys } = parts.config
      if (signingKeys === undefined) return {}
      return { apps: () => createApps(parts, signingKeys.keys), issuesTokens: true }
    },
  }
}

function createApps(parts: FeatureParts, keys: SigningJwk[]): readonly PlacedApp[] {
  const { publicUrl, policy, proofs } = parts
  const flow = CODE_FLOW.of(parts)
  const options = { ...createOptions(parts, keys), publicClients: flow?.publicClients }
  const server = createAuthorizationServer(options, flow?.grants(options))
  const { forms = [], apps = [] } = flow?.endpoints(options, server.authenticate) ?? {}
  const forPages = flow?.forPages
  const sendNonces = policy.tokens.dpopNonceRequired
  const endpoints = oauthRoutes({ server, proofs, sendNonces, more: forms, forPages })
  for (const app of apps) endpoints.route('/', app)
  return [
    { at: '/.well-known', app: metadataRoutes({ publicUrl, more: flow?.metadata, forPages }) },
    { at: '/', app: endpoints },
  ]
}

function createOptions(
  { config, policy, redis, verifier, authorizer, proofs, now }: FeatureParts,
  keys: SigningJwk[],
): AuthorizationServerOptions {
  const { publicUrl: issuer } = config
  const configured = clientsOf(config)
  const references = createReferenceStore(redis)
  const findRoutes = routesAt(policy.routes, issuer)
  const { accessTokenSeconds, sessionSeconds, refreshGraceSeconds, exchangeLimits } = policy.tokens
  return {
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
    isRoute: (path) => findRoutes(path).length > 0,
    scopesHeldBy: authorizer.scopesHeldBy,
    tenantIssuers: listTenantIssuers(policy, config),
    sessionSeconds,
    exchangeLimits,
    now,
  }
}
