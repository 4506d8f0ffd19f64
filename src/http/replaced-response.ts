/** Replaces a response, or its body, without what belonged to the old one. */
import type { Context } from 'hono'

/**
 * Drops the response of a request: its status, headers and trailers, and its body, which has no reader
 * any more. Otherwise Hono copies its headers to the next response, with a length and a coding that
 * the next body does not have. Not for a new response that reads the old one. Has no effect if there is no response yet.
 */
export function dropResponse(c: Context): void {
  if (!c.finalized || c.res === undefined) return
  const { body } = c.res
  c.res = undefined
  if (body?.locked === false) body.cancel().catch(() => {})
}

/** Replaces the response. Otherwise Hono copies the headers of the old one to it. */
export function replaceResponse(c: Context, response: Response): void {
  c.res = undefined
  c.res = response
}

/** Fields about the bytes of one body (RFC 9110 sections 8 and 14, RFC 9530, RFC 9421). */
const OF_THE_BYTES = [
  'accept-ranges',
  'content-digest',
  'content-encoding',
  'content-length',
  'content-md5',
  'content-range',
  'digest',
  'etag',
  'last-modified',
  'repr-digest',
  'signature',
  'signature-input',
  'trailer',
]

/** Replaces the body of the response, and removes the fields that describe the bytes of the old body. */
export function replaceBody(c: Context, body: string | ReadableStream<Uint8Array>): void {
  replaceResponse(c, withBody(c.res, body))
}

/** Returns a response with another body, without the fields that describe the bytes of the old body. */
export function withBody(
  { status, headers: received }: Response,
  body: string | ReadableStream<Uint8Array> | null,
): Response {
  const headers = new Headers([...received])
  for (const name of OF_THE_BYTES) headers.delete(name)
  return new Response(body, { status, headers })
}
