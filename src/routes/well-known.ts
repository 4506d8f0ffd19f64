/** The gateway's metadata documents. */
import type { Context, Hono } from 'hono'
import type { JSONWebKeySet } from 'jose'
import type { TokenSources } from '../access/tokens/token-sources.ts'
import { DPOP_ALGORITHMS } from '../crypto/dpop-algorithms.ts'
import { documentResponse } from '../http/entity-tag.ts'
import { createApp } from '../http/router.ts'
import type { PolicyRoute } from '../policy/route.ts'

/** The gateway as a protected resource (RFC 9728). */
export interface ProtectedResource {
  /** The resource identifier (RFC 9728 section 1.2). */
  readonly publicUrl: string
  /** Identifiers of the issuers that the gateway accepts tokens from. */
  readonly issuers: readonly string[]
  /** Default: credentials are read from `Authorization`. */
  readonly sources?: Pick<TokenSources, 'isAuthorizationRead'> | undefined
}

export interface WellKnownOptions extends ProtectedResource {
  /** Returns the public keys that verify the gateway's signatures at this moment. */
  readonly publicKeys: () => JSONWebKeySet
}

export interface ResourceTerms {
  readonly scopes?: readonly string[] | undefined
  /** Whether every request with a token needs a proof (RFC 9449). Default false. */
  readonly requiresProofs?: boolean
}

/** Returns the metadata of a protected resource (RFC 9728 section 2). */
export function resourceMetadata(
  { publicUrl, issuers, sources }: ProtectedResource,
  resource: string,
  { scopes = [], requiresProofs = false }: ResourceTerms,
) {
  const isBearer = sources?.isAuthorizationRead ?? true
  return {
    resource,
    // Claims with zero elements must be omitted (RFC 9728 section 3.2).
    ...(issuers.length > 0 && { authorization_servers: issuers }),
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    jwks_uri: `${publicUrl}/.well-known/jwks.json`,
    ...(isBearer && {
      bearer_methods_supported: ['header'],
      dpop_signing_alg_values_supported: DPOP_ALGORITHMS,
      dpop_bound_access_tokens_required: requiresProofs,
    }),
  }
}

/** Reports whether all routes that need a caller require a proof, and there is one. */
export function requireProofs(
  routes: readonly Pick<PolicyRoute, 'permission' | 'dpop'>[],
): boolean {
  const identified = routes.filter(({ permission }) => permission !== undefined)
  return identified.length > 0 && identified.every(({ dpop }) => dpop)
}

/** Returns the issuers in the order of a gateway that logs users in itself. Most clients use the first. */
export const ownFirst = (issuers: readonly string[], publicUrl: string): readonly string[] => [
  publicUrl,
  ...issuers.filter((issuer) => issuer !== publicUrl),
]

/** Creates the handler of a document. */
export const publicDocument = (document: () => object) => (c: Context) =>
  documentResponse(c, JSON.stringify(document()))

/**
 * Creates `GET /jwks.json` (RFC 7517) and `GET /oauth-protected-resource` (RFC 9728). The apps of features
 * come first, and may replace them.
 */
export function wellKnownRoutes(
  options: WellKnownOptions,
  routes: readonly PolicyRoute[],
  apps: readonly Hono[],
): Hono {
  const { publicUrl, publicKeys } = options
  const app = createApp()
  for (const each of apps) app.route('/', each)
  const document = resourceMetadata(options, publicUrl, { requiresProofs: requireProofs(routes) })
  return app.get('/jwks.json', publicDocument(publicKeys)).get(
    '/oauth-protected-resource',
    publicDocument(() => document),
  )
}
