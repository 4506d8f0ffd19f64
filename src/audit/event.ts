/** What the audit trail keeps of one decision (OWASP ASVS 16.2). */
import * as z from 'zod'

export const DECISIONS = ['allow', 'deny', 'error'] as const

const limitSchema = z.strictObject({
  name: z.string(),
  limit: z.int(),
  remaining: z.int().min(0),
  /** Present and true when the limit could not be counted and let the request through. */
  unavailable: z.literal(true).optional(),
})

/**
 * One decision. Nothing in it is a credential: tokens appear as the SHA-256 of `iss` and `jti`.
 * Times are UTC (RFC 3339), durations in milliseconds.
 */
export const auditEventSchema = z.strictObject({
  /** UUIDv7: orders by time, and is the key that makes delivery idempotent. */
  id: z.uuid(),
  time: z.iso.datetime(),
  requestId: z.string(),
  /** W3C trace id, 32 hex digits. */
  traceId: z.string(),
  actor: z.strictObject({
    issuer: z.string().nullable(),
    subject: z.string().nullable(),
    client: z.string().nullable(),
    tenant: z.string().nullable(),
    tokenIdHash: z.string().nullable(),
  }),
  method: z.string(),
  /** The route's pattern (`/orders/:id`), or null where none matched. Never the raw path. */
  route: z.string().nullable(),
  decision: z.enum(DECISIONS),
  /** `ok`, or the precise reason: `token_rejected:exp`, `redis:timeout`. */
  reason: z.string(),
  /** The status that was sent. */
  status: z.int(),
  limits: z.array(limitSchema),
  /** Milliseconds each stage took by itself. */
  durationsMs: z.record(z.string(), z.number()),
  /** The client's address as limits see it: IPv6 as its /64; `unknown` where none was told. */
  address: z.string(),
  /** The Cloudflare data centre (`request.cf.colo`). */
  colo: z.string().nullable(),
  /** Only where a rule in observe mode would have refused: each as `reason` would have told it. */
  observed: z.array(z.string()).min(1).optional(),
  /** Only where an operator changed something: what was done, and to what (an id, never a secret). */
  change: z.strictObject({ action: z.string(), target: z.string() }).optional(),
  /** Only on `audit_lost`: how many events, at most, never arrived. */
  lost: z.int().min(1).optional(),
})

export type AuditEvent = z.infer<typeof auditEventSchema>
/** What an operator did, such as `client.create`, and to what. */
export type AuditChange = NonNullable<AuditEvent['change']>
export type AuditDecision = AuditEvent['decision']

/**
 * Port: takes an event and sees to it that it is delivered at least once. Never throws and never
 * delays the answer: whatever it has to wait for goes into `waitUntil`.
 */
export interface AuditSink {
  record(event: AuditEvent, waitUntil: (promise: Promise<unknown>) => void): void
}
