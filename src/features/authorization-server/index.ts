/** The authorization server: `import { authorizationServer } from 'portcullis/authorization-server'`. */
import * as z from 'zod/mini'
import { createScopeOfRoles } from '../../access/permissions.ts'
import { createRevocations } from '../../access/revocation/redis/revocations.ts'
import { createReferenceStore } from '../../access/tokens/redis/references.ts'
import { createRefreshFamilies } from '../../access/tokens/redis/refresh-families.ts'
import { createRefreshTokens } from '../../access/tokens/refresh-tokens.ts'
import type { SigningJwk } from '../../access/tokens/signing-keys.ts'
import { createTokenIssuer } from '../../access/tokens/token-issuer.ts'
import { Misconfigured } from '../../errors.ts'
import type { Feature, FeatureParts, PlacedApp } from '../../gateway/feature.ts'
import { listTenantIssuers } from '../../gateway/tenant-issuers.ts'
import { mistakeAt } from '../../problems/mistake.ts'
import { ownFirst } from '../../routes/well-known.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { createAuthorizationServer } from './authorization-server.ts'
import { SERVER_PROFILE, unusableWithout } from './client.ts'
import { CODE_FLOW } from './code-flow.ts'
import { profileMetadata } from './metadata.ts'
import type { AuthorizationServerOptions } from './options.ts'
import { createClientLogins } from './redis/client-logins.ts'
import { createGrantStore } from './redis/grant-store.ts'
import { resourceRoutes } from './routes/resource.ts'
import { metadataRoutes, oauthRoutes } from './routes/routes.ts'
import {
  type ConfiguredClient,
  clientsOf,
  clientVariables,
  PROFILES,
  type SecurityProfile,
} from './schemas/client.ts'
import { routesAt } from './target.ts'

/** The authorization server as a user configures it. */
export interface AuthorizationServerDefinition {
  /**
   * `fapi2`: the rules of the FAPI 2.0 security profile. Clients that can act for users must push their
   * requests, authenticate by `private_key_jwt`, and bind their tokens with DPoP; `aud` of every client
   * assertion is the issuer, and none is signed with RS256. A client can have the profile alone.
   * Default: none.
   */
  readonly profile?: SecurityProfile
}

const definitionSchema = z.strictObject({ profile: z.optional(z.enum(PROFILES)) })

/**
 * Returns the authorization server, for the policy's `features`: `/oauth/token`, `/oauth/revoke`,
 * `/oauth/introspect` and its metadata. They do not exist without `SIGNING_KEYS`. Throws `Misconfigured`
 * for a mistake in the definition.
 */
export function authorizationServer(definition: AuthorizationServerDefinition = {}): Feature {
  parseConfiguration('The policy', definitionSchema, definition, ['authorizationServer()'])
  const { profile } = definition
  return {
    name: 'authorizationServer',
    presence: 'more',
    settings: definition,
    effects: { profile: 'less' },
    variables: clientVariables,
    issuesTokens: true,
    create(parts) {
      const { signingKeys } = parts.config
      if (signingKeys === undefined) return {}
      refuseUnusable(clientsOf(parts.config), profile)
      if (profile !== undefined) SERVER_PROFILE.offer(parts, profile)
      return { apps: () => createApps(parts, signingKeys.keys, profile) }
    },
  }
}

/** Throws `Misconfigured` for clients that the profile would never let authenticate. */
function refuseUnusable(
  clients: readonly ConfiguredClient[],
  profile: SecurityProfile | undefined,
): void {
  const mistakes = clients.flatMap((client, index) => {
    const message = unusableWithout(client, profile)
    if (message === undefined) return []
    const code = client.jwks === undefined ? 'missing' : 'conflict'
    return mistakeAt(code, ['CLIENTS', index, 'jwks'], message)
  })
  if (mistakes.length > 0) throw new Misconfigured('The environment', mistakes)
}

function createApps(
  parts: FeatureParts,
  keys: SigningJwk[],
  profile: SecurityProfile | undefined,
): readonly PlacedApp[] {
  const { publicUrl, policy, proofs } = parts
  const flow = CODE_FLOW.of(parts)?.(profile)
  const options = { ...createOptions(parts, keys), profile, publicClients: flow?.publicClients }
  const more = { ...flow?.metadata, ...profileMetadata(profile, flow !== undefined) }
  const server = createAuthorizationServer(options, flow?.grants(options))
  const { forms = [], apps = [] } = flow?.endpoints(options, server.authenticate) ?? {}
  const forPages = flow?.forPages
  const sendNonces = policy.tokens.dpopNonceRequired
  const endpoints = oauthRoutes({
    server,
    proofs,
    sendNonces,
    more: forms,
    descriptions: flow?.descriptions,
    forPages,
  })
  for (const app of apps) endpoints.route('/', app)
  const resources = resourceRoutes({
    ...parts,
    issuers: serversOf(parts, profile, flow !== undefined),
    routes: policy.routes,
    bindsTokens: profile !== undefined,
    offersScopes: flow !== undefined,
    forPages,
  })
  return [
    { at: '/.well-known', app: metadataRoutes({ publicUrl, more, forPages }) },
    { at: '/.well-known', app: resources },
    { at: '/', app: endpoints },
  ]
}

/**
 * Returns the authorization servers of the gateway as a resource. With the profile, its clients get tokens
 * here alone; those of other issuers are for clients that their operators have configured.
 */
function serversOf(
  { tokenIssuers, publicUrl }: FeatureParts,
  profile: SecurityProfile | undefined,
  logsIn: boolean,
): readonly string[] {
  if (profile !== undefined) return [publicUrl]
  return logsIn ? ownFirst(tokenIssuers, publicUrl) : tokenIssuers
}

function createOptions(
  { config, policy, redis, verifier, authorizer, proofs, now }: FeatureParts,
  keys: SigningJwk[],
): Omit<AuthorizationServerOptions, 'profile'> {
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
      store: createRefreshFamilies(redis, now),
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
