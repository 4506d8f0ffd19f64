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

const DEFAULT_ROWS = 500
/**
 * 1 to 500. A row has up to 8 KB, or 32 KB if an operator changed relations. An isolate has 128 MB
 * for all requests.
 */
const ROWS = /^(?:[1-9]\d?|[1-4]\d\d|500)$/
/** Safe integers in decimal form. */
const SEQ = /^(?:0|[1-9]\d{0,14})$/

/** The query of a page: rows with a `seq` above `after`. Refuses unknown parameters. */
export const chainQuerySchema = z.strictObject({
  after: z
    .string()
    .regex(SEQ, 'must be a whole number')
    .transform(Number)
    .optional()
    .transform((seq) => seq ?? 0)
    .describe('rows behind this seq; default 0'),
  limit: z
    .string()
    .regex(ROWS, 'must be a whole number from 1 to 500')
    .transform(Number)
    .optional()
    .transform((rows) => rows ?? DEFAULT_ROWS)
    .describe('from 1 to 500; default 500'),
})

export type ChainQuery = z.infer<typeof chainQuerySchema>

const value = z.union([z.string(), z.number(), z.null()])

/** A page of the API. Columns have their names in D1; no column is omitted or added. */
export const chainPageSchema = z.strictObject({
  /** In the order of `seq`. */
  rows: z.array(z.record(z.string(), value)),
  /** The checkpoints of the page's rows. The last page also contains those after the last row. */
  checkpoints: z.array(z.record(z.string(), value)),
  /** The end of the chain as the audit Worker recorded it; null before the first event. */
  head: z.strictObject({ seq: z.int(), hash: z.string() }).nullable(),
  /** Number of rows of the trail that are in no chain. Only on the first page. */
  unchained: z.int().optional(),
  /** The `after` of the next page; absent on the last page. */
  next: z.int().optional(),
})

export type ChainPage = z.infer<typeof chainPageSchema>

/** Port: reads the chain as it is stored. Does NOT verify it. Rejects with `Unavailable`. */
export interface ChainLog {
  read(query: ChainQuery): Promise<ChainPage>
}
