/** Reading the audit trail: the query and the port. */

import * as z from 'zod/mini'
import { describe } from '../validators/checks.ts'
import { pageSize } from '../validators/page.ts'
import { digits, integer } from '../validators/schema-parts.ts'
import { chainRowSchema } from './chain-row.ts'
import type { AuditEvent } from './event.ts'
import { DECISIONS } from './event-schema.ts'

/** `{milliseconds}.{event id}` of the last event of a page. Clients treat it as opaque. */
const CURSOR = /^\d{1,15}\.[0-9a-f-]{36}$/i

/**
 * Parses the query of the audit log from strings. Refuses unknown keys. Times are RFC 3339 with any
 * offset; `since` is inclusive, `until` exclusive.
 */
export const auditQuerySchema = z.strictObject({
  subject: z.optional(z.string().check(z.minLength(1), z.maxLength(255))),
  client: z.optional(z.string().check(z.minLength(1), z.maxLength(255))),
  tenant: z.optional(z.string().check(z.minLength(1), z.maxLength(255))),
  /** As recorded: any address of an IPv6 network stands for its /64. */
  address: z.optional(z.string().check(z.minLength(1), z.maxLength(64))),
  decision: z.optional(z.enum(DECISIONS)),
  status: z.optional(
    z.pipe(
      z.string().check(z.regex(/^[1-5]\d\d$/, 'must be a status such as 403')),
      z.transform(Number),
    ),
  ),
  /** The tool, prompt or resource of a call of an MCP server. */
  tool: z.optional(z.string().check(z.minLength(1), z.maxLength(256))),
  /** The action of a change by an operator (`ban.create`), or its part before the dot. */
  change: z.optional(
    z.string().check(z.regex(/^[a-z-]{1,64}(?:\.[a-z-]{1,64})?$/, 'must be an action: ban.create')),
  ),
  /** The route's pattern, such as `/orders/:id`. */
  route: z.optional(z.string().check(z.minLength(1), z.maxLength(2_048))),
  /** The host pattern of the route, such as `*.example.com`. */
  host: z.optional(z.string().check(z.minLength(1), z.maxLength(253))),
  /** The name of an origin of the policy. */
  origin: z.optional(z.string().check(z.minLength(1), z.maxLength(255))),
  /** The id of an API key. */
  key: z.optional(z.uuid().check(z.toLowerCase())),
  /** A complete reason (`token_rejected:exp`), or only its code, which matches all details. */
  reason: z.optional(z.string().check(z.minLength(1), z.maxLength(512))),
  /** The same for the reasons of rules in observe mode. */
  observed: z.optional(z.string().check(z.minLength(1), z.maxLength(512))),
  /** `X-Request-Id` of a response: UUIDv7, in upper or lower case. */
  requestId: z.optional(z.uuidv7().check(z.toLowerCase())),
  since: z.optional(z.iso.datetime({ offset: true })),
  until: z.optional(z.iso.datetime({ offset: true })),
  /** Continues after the page that returned the cursor. Use it with the same filters. */
  cursor: z.optional(z.string().check(z.regex(CURSOR, 'a cursor from an earlier page'))),
  limit: pageSize,
})

export type AuditQuery = z.infer<typeof auditQuerySchema>

/** Newest event first. The last page has no `cursor`. */
export interface AuditPage {
  readonly events: readonly AuditEvent[]
  readonly cursor?: string
}

/** A tenant of some issuers, whose tenants of one name are the same. */
export interface TenantOfIssuers {
  readonly tenant: string
  readonly issuers: readonly string[]
}

const DEFAULT_ROWS = 500
/** A row has up to 8 KB, or 32 KB if an operator changed relations; an isolate has 128 MB. */
const ROWS = /^(?:[1-9]\d?|[1-4]\d\d|500)$/
const SEQ = /^(?:0|[1-9]\d{0,14})$/

/** Parses the query of a page from strings. Refuses unknown parameters. */
export const chainQuerySchema = z.strictObject({
  after: digits(SEQ, 'must be a whole number', 0).check(
    describe('rows behind this seq; default 0'),
  ),
  limit: digits(ROWS, 'must be a whole number from 1 to 500', DEFAULT_ROWS).check(
    describe('from 1 to 500; default 500'),
  ),
})

/** A block of the chain, as the API and exported files have it. */
const blockSchema = z.strictObject({
  first_seq: integer(),
  last_seq: integer(),
  previous_hash: z.string(),
  hash: z.string(),
  /** The text of each event; see `docs/audit.md`. */
  lines: z.array(z.string()),
  /** A query by request id does not read the block for a request that began before. Null: of an earlier version. */
  start_ms: z.optional(z.nullable(integer())),
  /** The digest of what else searches read of the block, to compare with its events. */
  search: z.optional(z.string()),
})

/** A page of the API. Columns have their names in D1; no column is omitted or added. */
export const chainPageSchema = z.strictObject({
  /** In the order of `seq`. */
  rows: z.array(chainRowSchema),
  /** In the order of `first_seq`. Absent: none. */
  blocks: z.optional(z.array(blockSchema)),
  /** The checkpoints of the page's rows. The last page also contains those after the last row. */
  checkpoints: z.array(chainRowSchema),
  /** The end of the chain as the audit Worker recorded it; null before the first event. */
  head: z.nullable(z.strictObject({ seq: integer(), hash: z.string() })),
  /** Number of rows of the trail that are in no chain. Only on the first page. */
  unchained: z.optional(integer()),
  /** The `after` of the next page; absent on the last page. */
  next: z.optional(integer()),
})

export type ChainPage = z.infer<typeof chainPageSchema>
