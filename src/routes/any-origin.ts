/** CORS for endpoints that pages of every origin may use, because no cookie matters there. */
import type { MiddlewareHandler } from 'hono'
import { writeHeaders } from '../http/response-headers.ts'

const EXPOSED = 'DPoP-Nonce, Retry-After, WWW-Authenticate'
const MAX_AGE_SECONDS = '600'

/**
 * Lets pages of every origin read the responses, without credentials, and answers their preflight
 * requests. Not for endpoints that act for the user of a browser.
 */
export const anyOrigin = (methods: string): MiddlewareHandler =>
  async function anyOrigin(c, next) {
    if (c.req.method === 'OPTIONS') {
      // No preflight request: a route of the policy may answer it.
      if (c.req.header('Access-Control-Request-Method') === undefined) return next()
      return new Response(null, {
        status: 204,
        headers: {
          'Access-Control-Allow-Origin': '*',
          'Access-Control-Allow-Methods': methods,
          // The names that a page may send: no wildcard covers `Authorization`.
          'Access-Control-Allow-Headers':
            'Accept, Authorization, Content-Type, DPoP, MCP-Protocol-Version',
          'Access-Control-Max-Age': MAX_AGE_SECONDS,
        },
      })
    }
    await next()
    writeHeaders(c, (headers) => {
      headers.set('Access-Control-Allow-Origin', '*')
      headers.set('Access-Control-Expose-Headers', EXPOSED)
    })
    return undefined
  }
