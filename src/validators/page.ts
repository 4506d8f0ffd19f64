/** Pagination: the query parameters and the page type. */
import { digits } from './schema-parts.ts'
import * as z from './zod.ts'

const DEFAULT_PAGE_SIZE = 50
/** 1 to 200. */
const PAGE_SIZE = /^(?:[1-9]\d?|1\d\d|200)$/

export const pageSize = digits(
  PAGE_SIZE,
  'must be a whole number from 1 to 200',
  DEFAULT_PAGE_SIZE,
).check(z.describe('from 1 to 200; default 50'))

export const pageQuerySchema = z.strictObject({
  limit: pageSize,
  cursor: z
    .optional(z.uuid('must be a cursor from an earlier page').check(z.toLowerCase()))
    .check(z.describe('from an earlier page')),
})

export type PageQuery = z.infer<typeof pageQuerySchema>

/** One page, newest first. The last page has no `cursor`. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly cursor?: string
}
