/** Reading the chain of the audit trail, for whoever verifies it: what is asked, and who answers. */
import * as z from 'zod'

const DEFAULT_ROWS = 500
/**
 * 1 to 500: rows of up to 8 KB each, 32 KB where an operator changed relations, and an isolate has 128 MB
 * for everybody.
 */
const ROWS = /^(?:[1-9]\d?|[1-4]\d\d|500)$/
/** Safe integers, as they are written. */
const SEQ = /^(?:0|[1-9]\d{0,14})$/

/** The query of a page: rows with a `seq` above `after`. Unknown parameters are refused. */
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

/** A page as the API answers it: columns by their names in D1, nothing left out, nothing added. */
export const chainPageSchema = z.strictObject({
  /** In the order of `seq`. */
  rows: z.array(z.record(z.string(), value)),
  /** Those of the page's rows; on the last page also those behind the last row. */
  checkpoints: z.array(z.record(z.string(), value)),
  /** Where the audit Worker says that the chain ends; null before its first event. */
  head: z.strictObject({ seq: z.int(), hash: z.string() }).nullable(),
  /** How many rows of the trail are in no chain. Only on the first page. */
  unchained: z.int().optional(),
  /** `after` of the next page; absent on the last one. */
  next: z.int().optional(),
})

export type ChainPage = z.infer<typeof chainPageSchema>

/** Port: the chain as it is stored, unverified. Rejects with `Unavailable`. */
export interface ChainLog {
  read(query: ChainQuery): Promise<ChainPage>
}
