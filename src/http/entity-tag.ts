import type { Context } from 'hono'
import { sha256 } from '../crypto/sha256.ts'
import { CACHEABLE } from './response-headers.ts'

/**
 * Returns a public document that the gateway creates, with its `ETag`: cacheable for five minutes. Answers a request
 * whose `If-None-Match` names this tag with 304 (RFC 9110 section 13.1.2). NOT for responses of an origin, which have
 * their own tags.
 */
export async function documentResponse(
  c: Context,
  text: string,
  type = 'application/json',
  headers?: Readonly<Record<string, string>>,
): Promise<Response> {
  const fields = { ...CACHEABLE, ETag: `"${await sha256(text)}"` }
  const known = c.req.header('If-None-Match')
  return known === '*' || known?.match(/"[^"]*"/g)?.includes(fields.ETag)
    ? c.body(null, 304, fields)
    : c.body(text, 200, { ...fields, ...headers, 'Content-Type': type })
}
