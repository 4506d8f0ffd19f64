/** The metadata document of the authorization server. */
import { Hono } from 'hono'
import { etag } from 'hono/etag'
import { CACHEABLE } from '../../http/response-headers.ts'
import { authorizationServerMetadata } from '../../oauth/metadata.ts'

/** Creates `GET /oauth-authorization-server` (RFC 8414), which is cacheable and has an ETag. */
export function metadataRoutes(publicUrl: string): Hono {
  const metadata = authorizationServerMetadata(publicUrl)
  return new Hono().get('/oauth-authorization-server', etag(), (c) =>
    c.json(metadata, 200, CACHEABLE),
  )
}
