/** Sets headers of a response that may be immutable because it comes from `fetch`. */
import type { Context } from 'hono'

/** Calls `write` with the headers of the response, and again with those of a copy if it throws. */
export function writeHeaders(c: Context, write: (headers: Headers) => void): void {
  try {
    write(c.res.headers)
  } catch {
    const response = new Response(c.res.body, c.res)
    // Otherwise Hono copies the headers of the old response to the new one.
    c.res = undefined
    c.res = response
    write(response.headers)
  }
}
