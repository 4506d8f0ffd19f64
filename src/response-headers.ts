/** Headers of a response that may have come straight from `fetch`. */
import type { Context } from 'hono'

/**
 * The headers of the response that is being sent, made writable first where they are not (those of
 * a fetched response throw). Status, body and WebSocket stay as they are.
 */
export function mutableHeaders(c: Context): Headers {
  const { headers } = c.res
  try {
    headers.delete('X-Portcullis-Writable')
    return headers
  } catch {
    const response = new Response(c.res.body, c.res)
    // Hono merges headers of the old response into an assigned one unless it is cleared first.
    c.res = undefined
    c.res = response
    return response.headers
  }
}
