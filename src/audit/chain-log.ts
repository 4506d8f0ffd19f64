/** Reading the chain of the audit trail for verification: the query, the page and the port. */
import * as z from 'zod'

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
