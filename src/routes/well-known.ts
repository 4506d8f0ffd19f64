/** What the gateway publishes about itself. */
import { Hono } from 'hono'
import { etag } from 'hono/etag'
import type { JSONWebKeySet } from 'jose'

export interface WellKnownOptions {
  /** The resource identifier (RFC 9728 section 1.2). */
  readonly publicUrl: string
  /** Identifiers of the issuers whose tokens are accepted. */
  readonly issuers: readonly string[]
  /** Public keys, of this moment, that what the gateway signs verifies with. */
  readonly publicKeys: () => JSONWebKeySet
}

/** Shorter than the time a new key is published before it signs. */
const MAX_AGE_SECONDS = 300

/**
 * `GET /jwks.json` (RFC 7517) and `GET /oauth-protected-resource` (RFC 9728), both cacheable for
 * five minutes and with an ETag.
 */
export function wellKnownRoutes({ publicUrl, issuers, publicKeys }: WellKnownOptions): Hono {
  const headers = {
    'Cache-Control': `public, max-age=${MAX_AGE_SECONDS}`,
    'X-Content-Type-Options': 'nosniff',
  }
  return new Hono()
    .get('/jwks.json', etag(), (c) => c.json(publicKeys(), 200, headers))
    .get('/oauth-protected-resource', etag(), (c) =>
      c.json(
        {
          resource: publicUrl,
          authorization_servers: issuers,
          jwks_uri: `${publicUrl}/.well-known/jwks.json`,
          bearer_methods_supported: ['header'],
        },
        200,
        headers,
      ),
    )
}
