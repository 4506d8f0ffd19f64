/** Headers of a response that may have come straight from `fetch`. */
import type { Context } from 'hono'

/**
 * Lets `write` set headers of the response that is being sent. Where they cannot be written (those
 * of a fetched response throw), the response is copied, and `write` called once more. Status, body
 * and WebSocket stay as they are.
 */
export function writeHeaders(c: Context, write: (headers: Headers) => void): void {
  try {
    write(c.res.headers)
  } catch {
    const response = new Response(c.res.body, c.res)
    // Hono merges headers of the old response into an assigned one unless it is cleared first.
    c.res = undefined
    c.res = response
    write(response.headers)
  }
}
