/** Faults that can occur between two processes that communicate over TCP. */
import * as z from 'zod'

const milliseconds = z.number().int().min(0)
const bytes = z.number().int().min(0)

const lasting = [
  z.strictObject({ kind: z.literal('none') }),
  /** Delays each piece of a response by `ms`, and by up to `jitterMs` more. Keeps the order. */
  z.strictObject({
    kind: z.literal('latency'),
    ms: milliseconds,
    jitterMs: milliseconds.optional(),
  }),
  /** Accepts connections but forwards nothing. Held data is forwarded when the fault ends. */
  z.strictObject({ kind: z.literal('hang') }),
  /** Stops listening, and resets open connections. */
  z.strictObject({ kind: z.literal('refuse') }),
  /**
   * Resets the connection after so many bytes of a response. 0: the target handled the request, but
   * the client receives nothing.
   */
  z.strictObject({ kind: z.literal('reset'), afterBytes: bytes }),
  /** Ends a response after so many bytes, as if it were complete. */
  z.strictObject({ kind: z.literal('truncate'), afterBytes: bytes }),
  z.strictObject({ kind: z.literal('throttle'), bytesPerSecond: z.number().int().min(1) }),
  /** Sends so many random bytes instead of a response, and closes. Does not call the target. */
  z.strictObject({ kind: z.literal('garbage'), bytes: bytes.optional() }),
  /**
   * Sends this HTTP response and does not call the target. Adds `Content-Length` unless the headers
   * contain it or `Transfer-Encoding`, so that both can be wrong. `close` ends the connection.
   */
  z.strictObject({
    kind: z.literal('answer'),
    status: z.number().int().min(100).max(999),
    headers: z.record(z.string(), z.string()).optional(),
    /** UTF-8. For arbitrary bytes, use `bodyBase64`. */
    body: z.string().optional(),
    bodyBase64: z.base64().optional(),
    close: z.boolean().optional(),
  }),
] as const

const lastingFault = z.discriminatedUnion('kind', lasting)

const fault = z.discriminatedUnion('kind', [
  ...lasting,
  /** Alternates: `down` (default: refuse) for `downMs`, then no fault for `upMs`. */
  z.strictObject({
    kind: z.literal('flap'),
    upMs: z.number().int().min(1),
    downMs: z.number().int().min(1),
    down: lastingFault.optional(),
  }),
])

/** A fault that does not change by itself. */
export type LastingFault = z.infer<typeof lastingFault>

/** How a proxy treats its traffic. Plain data. */
export type Fault = z.infer<typeof fault>

export const NO_FAULT: LastingFault = { kind: 'none' }

/** Parses a fault from a JSON value. Throws a `ZodError` for an invalid one. */
export function parseFault(value: unknown): Fault {
  return fault.parse(value)
}
