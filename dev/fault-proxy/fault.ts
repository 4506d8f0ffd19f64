/** What can go wrong between two processes that talk over TCP. */
import * as z from 'zod'

const milliseconds = z.number().int().min(0)
const bytes = z.number().int().min(0)

const lasting = [
  z.strictObject({ kind: z.literal('none') }),
  /** Answers come later, each piece by `ms` and up to `jitterMs` more; their order is kept. */
  z.strictObject({
    kind: z.literal('latency'),
    ms: milliseconds,
    jitterMs: milliseconds.optional(),
  }),
  /** Connections are accepted, nothing is forwarded. What was held goes on when the fault ends. */
  z.strictObject({ kind: z.literal('hang') }),
  /** Nothing listens, and connections are reset. */
  z.strictObject({ kind: z.literal('refuse') }),
  /** An answer is reset after so many bytes; 0: the target has worked, and nobody hears of it. */
  z.strictObject({ kind: z.literal('reset'), afterBytes: bytes }),
  /** An answer ends after so many bytes, as if it were whole. */
  z.strictObject({ kind: z.literal('truncate'), afterBytes: bytes }),
  z.strictObject({ kind: z.literal('throttle'), bytesPerSecond: z.number().int().min(1) }),
  /** So many random bytes instead of an answer, and the end; the target is not asked. */
  z.strictObject({ kind: z.literal('garbage'), bytes: bytes.optional() }),
  /**
   * This HTTP answer instead of the target's, which is not asked. `Content-Length` is added unless
   * the headers hold it or `Transfer-Encoding`, so that both can lie. `close` ends the connection.
   */
  z.strictObject({
    kind: z.literal('answer'),
    status: z.number().int().min(100).max(999),
    headers: z.record(z.string(), z.string()).optional(),
    /** UTF-8; or as octets in `bodyBase64`. */
    body: z.string().optional(),
    bodyBase64: z.base64().optional(),
    close: z.boolean().optional(),
  }),
] as const

const lastingFault = z.discriminatedUnion('kind', lasting)

const fault = z.discriminatedUnion('kind', [
  ...lasting,
  /** `down` (default: refuse) for `downMs`, then nothing wrong for `upMs`, and again. */
  z.strictObject({
    kind: z.literal('flap'),
    upMs: z.number().int().min(1),
    downMs: z.number().int().min(1),
    down: lastingFault.optional(),
  }),
])

/** A fault that does not change by itself. */
export type LastingFault = z.infer<typeof lastingFault>

/** How a proxy treats what goes through it. Plain data. */
export type Fault = z.infer<typeof fault>

export const NO_FAULT: LastingFault = { kind: 'none' }

/** Reads a fault that came as JSON. Throws a `ZodError` for anything else. */
export function parseFault(value: unknown): Fault {
  return fault.parse(value)
}
