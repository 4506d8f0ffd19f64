/** The gateway's metadata documents. */
import type { Hono } from 'hono'
import { etag } from 'hono/etag'
import type { JSONWebKeySet } from 'jose'
import { DPOP_ALGORITHMS } from '../crypto/dpop-algorithms.ts'
import { CACHEABLE } from '../http/response-headers.ts'
import { createApp } from '../http/router.ts'
import type { TokenSources } from '../tokens/token-sources.ts'

export interface WellKnownOptions {
  /** The resource identifier (RFC 9728 section 1.2). */
  readonly publicUrl: string
  /** Identifiers of the issuers that the gateway accepts tokens from. */
  readonly issuers: readonly string[]
  /** Default: credentials are read from `Authorization`. */
  readonly sources?: Pick<TokenSources, 'isAuthorizationRead'> | undefined
  /** Returns the public keys that verify the gateway's signatures at this moment. */
  readonly publicKeys: () => JSONWebKeySet
}

/**
 * Creates `GET /jwks.json` (RFC 7517) and `GET /oauth-protected-resource` (RFC 9728). Both are
 * cacheable for five minutes, with an ETag.
 */
export function wellKnownRoutes({
  publicUrl,
  issuers,
  publicKeys,
  sources,
}: WellKnownOptions): Hono {
  const isBearer = sources?.isAuthorizationRead ?? true
  return createApp()
    .get('/jwks.json', etag(), (c) => c.json(publicKeys(), 200, CACHEABLE))
    .get('/oauth-protected-resource', etag(), (c) =>
      c.json(
        {
          resource: publicUrl,
          // Claims with zero elements must be omitted (RFC 9728 section 3.2).
          ...(issuers.length > 0 && { authorization_servers: issuers }),
          jwks_uri: `${publicUrl}/.well-known/jwks.json`,
          ...(isBearer && {
            bearer_methods_supported: ['header'],
            dpop_signing_alg_values_supported: DPOP_ALGORITHMS,
            dpop_bound_access_tokens_required: false,
          }),
        },
        200,
        CACHEABLE,
      ),
    )
}
