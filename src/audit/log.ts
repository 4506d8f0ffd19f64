/** Reading the audit trail: what can be asked, and the port that answers. */
import * as z from 'zod'
import { pageSize } from '../operators/page.ts'
import { type AuditEvent, DECISIONS } from './event.ts'

/** `{milliseconds}.{event id}` of the last event of a page. Callers treat it as opaque. */
const CURSOR = /^\d{1,15}\.[0-9a-f-]{36}$/i

/**
 * The query of the audit log, from strings (a URL's query) to a checked {@link AuditQuery}. Unknown
 * keys are refused. Times are RFC 3339 with any offset; `since` is inclusive, `until` exclusive.
 */
export const auditQuerySchema = z.strictObject({
  subject: z.string().min(1).max(255).optional(),
  decision: z.enum(DECISIONS).optional(),
  /** The route's pattern, such as `/orders/:id`. */
  route: z.string().min(1).max(2_048).optional(),
  /** A whole reason (`token_rejected:exp`), or its code alone (`token_rejected`) for all of them. */
  reason: z.string().min(1).max(512).optional(),
  /** The same of what rules in observe mode would have refused for. */
  observed: z.string().min(1).max(512).optional(),
  /** `X-Request-Id` of an answer: UUIDv7, in either case. */
  requestId: z.uuidv7().toLowerCase().optional(),
  since: z.iso.datetime({ offset: true }).optional(),
  until: z.iso.datetime({ offset: true }).optional(),
  /** Goes on after the page that gave it, with the same filters. */
  cursor: z.string().regex(CURSOR, 'a cursor from an earlier page').optional(),
  limit: pageSize,
})

export type AuditQuery = z.infer<typeof auditQuerySchema>

/** One page, newest first. Without a `cursor` it is the last one. */
export interface AuditPage {
  readonly events: readonly AuditEvent[]
  readonly cursor?: string
}

/** Port: the recorded events. Rejects with `Unavailable` when the store does not answer. */
export interface AuditLog {
  query(query: AuditQuery): Promise<AuditPage>
}
