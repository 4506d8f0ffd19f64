/** Pages of a list: how one is asked for, and what it is. */
import * as z from 'zod'

export const DEFAULT_PAGE_SIZE = 50
export const MAX_PAGE_SIZE = 200

/** `limit` of a list, out of a URL's query: digits only, 1 to 200, default 50. */
export const pageSize = z
  .string()
  .regex(/^[1-9]\d{0,2}$/, 'a whole number from 1 to 200')
  .transform(Number)
  .refine((size) => size <= MAX_PAGE_SIZE, 'a whole number from 1 to 200')
  .optional()
  .transform((size) => size ?? DEFAULT_PAGE_SIZE)

/** The query of a list whose cursors are the ids of what it lists. Unknown parameters are refused. */
export const pageQuerySchema = z.strictObject({
  limit: pageSize,
  /** Goes on after the page that gave it. */
  cursor: z.uuid('a cursor from an earlier page').toLowerCase().optional(),
})

export type PageQuery = z.infer<typeof pageQuerySchema>

/** One page, newest first. Without a `cursor` it is the last one. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly cursor?: string
}
