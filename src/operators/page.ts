/** Pages of a list: how one is asked for, and what it is. */
import * as z from 'zod'

const DEFAULT_PAGE_SIZE = 50
/** 1 to 200. */
const PAGE_SIZE = /^(?:[1-9]\d?|1\d\d|200)$/

/** `limit` of a list, out of a URL's query: digits only, 1 to 200, default 50. */
export const pageSize = z
  .string()
  .regex(PAGE_SIZE, 'must be a whole number from 1 to 200')
  .transform(Number)
  .optional()
  .transform((size) => size ?? DEFAULT_PAGE_SIZE)
  .describe('from 1 to 200; default 50')

/** The query of a list whose cursors are the ids of what it lists. Unknown parameters are refused. */
export const pageQuerySchema = z.strictObject({
  limit: pageSize,
  cursor: z
    .uuid('must be a cursor from an earlier page')
    .toLowerCase()
    .optional()
    .describe('from an earlier page'),
})

export type PageQuery = z.infer<typeof pageQuerySchema>

/** One page, newest first. Without a `cursor` it is the last one. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly cursor?: string
}
