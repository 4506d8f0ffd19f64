/** Sets headers of a response that may be immutable because it comes from `fetch`. */
import type { Context } from 'hono'

/**
 * Calls `write` with the headers of the current response. If they are immutable and `write` throws,
 * copies the response and calls `write` again. Status, body and WebSocket stay the same.
 */
export function writeHeaders(c: Context, write: (headers: Headers) => void): void {
  try {
    write(c.res.headers)
  } catch {
    const response = new Response(c.res.body, c.res)
    // Hono copies the headers of the old response to a new one, unless the old one is cleared
    // first.
    c.res = undefined
    c.res = response
    write(response.headers)
  }
}
