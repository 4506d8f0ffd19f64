/** Validators of small documents (RFC 9110 section 8.8.3). */
import type { Context } from 'hono'
import { sha256 } from '../crypto/sha256.ts'

/** What a 304 keeps of the response that it replaces (RFC 9110 section 15.4.5). */
const KEPT = new Set(['cache-control', 'etag', 'vary'])

/**
 * Returns the response with an `ETag`, or a 304 if the client has the same document. It reads the whole body, so
 * it is for documents of the gateway itself. `If-None-Match` compares weakly (section 13.1.2).
 */
export async function withETag(c: Context, response: Response): Promise<Response> {
  const tag = `"${await sha256(await response.clone().text())}"`
  response.headers.set('ETag', tag)
  const known = c.req.header('If-None-Match')?.trim()
  if (known !== '*' && !known?.match(/"[^"]*"/g)?.includes(tag)) return response
  const headers = [...response.headers].filter(([name]) => KEPT.has(name))
  return new Response(null, { status: 304, headers })
}
