/** The gateway's metadata documents. */
import type { Context, Hono } from 'hono'
import { etag } from 'hono/etag'
import type { JSONWebKeySet } from 'jose'
import type { TokenSources } from '../access/tokens/token-sources.ts'
import { DPOP_ALGORITHMS } from '../crypto/dpop-algorithms.ts'
import { CACHEABLE } from '../http/response-headers.ts'
import { createApp } from '../http/router.ts'

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

/** Returns the metadata of a protected resource (RFC 9728 section 2). */
export function resourceMetadata(
  { publicUrl, issuers, sources }: ProtectedResource,
  resource: string,
  scopes: readonly string[] = [],
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
      dpop_bound_access_tokens_required: false,
    }),
  }
}

/** Creates the handler of a document. It is cacheable for five minutes, and has an ETag. */
export const publicDocument = (document: () => object) =>
  [etag(), (c: Context) => c.json(document(), 200, CACHEABLE)] as const

/**
 * Creates `GET /jwks.json` (RFC 7517) and `GET /oauth-protected-resource` (RFC 9728).
 */
export function wellKnownRoutes(options: WellKnownOptions): Hono {
  const { publicUrl, publicKeys } = options
  return createApp()
    .get('/jwks.json', ...publicDocument(publicKeys))
    .get('/oauth-protected-resource', ...publicDocument(() => resourceMetadata(options, publicUrl)))
}
