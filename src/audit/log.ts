/** Reading the audit trail: the query and the port. */
import * as z from 'zod'
import { pageSize } from '../validators/page.ts'
import { type AuditEvent, DECISIONS } from './event.ts'

/** `{milliseconds}.{event id}` of the last event of a page. Clients treat it as opaque. */
const CURSOR = /^\d{1,15}\.[0-9a-f-]{36}$/i

/**
 * Parses the query of the audit log from strings (a URL's query) into an {@link AuditQuery}.
 * Refuses unknown keys. Times are RFC 3339 with any offset; `since` is inclusive, `until`
 * exclusive.
 */
export const auditQuerySchema = z.strictObject({
  subject: z.string().min(1).max(255).optional(),
  decision: z.enum(DECISIONS).optional(),
  /** The route's pattern, such as `/orders/:id`. */
  route: z.string().min(1).max(2_048).optional(),
  /**
   * A complete reason (`token_rejected:exp`), or only its code (`token_rejected`) to match all
   * details.
   */
  reason: z.string().min(1).max(512).optional(),
  /** The same for the reasons of rules in observe mode. */
  observed: z.string().min(1).max(512).optional(),
  /** `X-Request-Id` of a response: UUIDv7, in upper or lower case. */
  requestId: z.uuidv7().toLowerCase().optional(),
  since: z.iso.datetime({ offset: true }).optional(),
  until: z.iso.datetime({ offset: true }).optional(),
  /** Continues after the page that returned the cursor. Use it with the same filters. */
  cursor: z.string().regex(CURSOR, 'a cursor from an earlier page').optional(),
  limit: pageSize,
})

export type AuditQuery = z.infer<typeof auditQuerySchema>

/** One page, newest event first. The last page has no `cursor`. */
export interface AuditPage {
  readonly events: readonly AuditEvent[]
  readonly cursor?: string
}

/** Port: queries the recorded events. Rejects with `Unavailable` if the store does not respond. */
export interface AuditLog {
  query(query: AuditQuery): Promise<AuditPage>
}
