/** Entity tags of public documents (RFC 9110 section 8.8.3). */
import type { MiddlewareHandler } from 'hono'
import { base64url } from 'jose'
import { replaceResponse } from './replaced-response.ts'

/** Headers of the document that a 304 repeats (RFC 9110 section 15.4.5). */
const HEADERS_OF_304 = ['Cache-Control', 'Content-Location', 'Date', 'Expires', 'Vary']

/**
 * Sets the `ETag` of a successful response, unless it has one, and responds with 304 to a client that
 * has the document. Reads the body to its end first, so it is not for streams.
 */
export function etag(): MiddlewareHandler {
  return async function etag(c, next) {
    await next()
    const { res } = c
    if (!res.ok) return
    const tag = res.headers.get('ETag') ?? (await tagOf(res.clone()))
    if (!isKnown(tag, c.req.header('If-None-Match'))) return c.header('ETag', tag)
    const headers = new Headers({ ETag: tag })
    for (const name of HEADERS_OF_304) {
      const value = res.headers.get(name)
      if (value !== null) headers.set(name, value)
    }
    await res.body?.cancel()
    replaceResponse(c, new Response(null, { status: 304, headers }))
  }
}

async function tagOf(response: Response): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', await response.arrayBuffer())
  return `"${base64url.encode(new Uint8Array(digest))}"`
}

/** Compares weakly (RFC 9110 section 13.1.2). */
function isKnown(tag: string, ifNoneMatch = ''): boolean {
  if (ifNoneMatch === '*') return true
  return ifNoneMatch.match(/"[^"]*"/g)?.includes(tag.replace(/^W\//, '')) ?? false
}
