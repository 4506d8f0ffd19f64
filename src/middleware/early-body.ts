/** Bodies that a middleware of the app has read before a stage needs them. */
import type { Context } from 'hono'
import { OutOfOrder } from '../errors.ts'

/** What Hono keeps of a body that was read with `c.req`, if it has all bytes. */
const EXACT = ['arrayBuffer', 'blob', 'text'] as const

/**
 * Returns the bytes of the body if a middleware has read it with `c.req.text()`, `json()`, `arrayBuffer()` or
 * `blob()`. Undefined if nothing has read it. Throws `OutOfOrder` if its bytes are lost, as after a read of
 * `c.req.raw`.
 */
export function readEarlier(
  c: Context,
  body: ReadableStream<Uint8Array>,
  by: string,
): Promise<Uint8Array> | undefined {
  // A stream of our own reads the request's body, which Bun then reports as used.
  const isUsed = body === c.req.raw.body && c.req.raw.bodyUsed
  if (!body.locked && !isUsed) return undefined
  const cache: Readonly<Partial<Record<string, unknown>>> = c.req.bodyCache
  const kept = EXACT.find((name) => cache[name] !== undefined)
  if (kept === undefined)
    throw new OutOfOrder(
      `${by} on ${c.req.method} ${c.req.path}: app.use(guard) must run before the middleware that has read ` +
        'the body; or let that middleware read it with c.req.text(), which keeps it for others',
    )
  return c.req.arrayBuffer().then((buffer) => new Uint8Array(buffer))
}
