/** Headers of responses: of public documents, of others, and of responses that may be immutable. */
import type { Context } from 'hono'
import { replaceResponse } from './replaced-response.ts'

/**
 * Headers of public documents: cacheable for five minutes, which is shorter than the time for which
 * a new signing key is published before it signs.
 */
export const CACHEABLE = {
  'Cache-Control': 'public, max-age=300',
  'X-Content-Type-Options': 'nosniff',
} as const

/** Headers of responses that must not be stored. */
export const NO_STORE = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
} as const

/** Calls `write` with the headers of the response, and again with those of a copy if it throws. */
export function writeHeaders(c: Context, write: (headers: Headers) => void): void {
  try {
    write(c.res.headers)
  } catch {
    const response = new Response(c.res.body, c.res)
    replaceResponse(c, response)
    write(response.headers)
  }
}
