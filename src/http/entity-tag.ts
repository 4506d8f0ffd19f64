import type { MiddlewareHandler } from 'hono'
import { sha256 } from '../crypto/sha256.ts'
import { replaceResponse } from './replaced-response.ts'

/**
 * Sets the `ETag` of a document. Answers a request whose `If-None-Match` names this tag with 304 (RFC 9110 section
 * 13.1.2). Reads the whole document.
 */
export const entityTag: MiddlewareHandler = async function entityTag(c, next) {
  await next()
  if (!c.res.ok) return
  const tag = `"${await sha256(await c.res.clone().text())}"`
  c.res.headers.set('ETag', tag)
  const known = c.req.header('If-None-Match')
  if (known !== '*' && !known?.match(/"[^"]*"/g)?.includes(tag)) return
  const headers = new Headers(c.res.headers)
  for (const name of [...headers.keys()]) if (!KEPT.has(name)) headers.delete(name)
  replaceResponse(c, new Response(null, { status: 304, headers }))
}

/** Headers of the document that its 304 has, too. */
const KEPT: ReadonlySet<string> = new Set(['cache-control', 'etag', 'vary'])
