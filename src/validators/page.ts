/** Pagination: the query parameters, the page type, and the port of records that are listed. */

import * as z from 'zod/mini'
import { describe } from './checks.ts'
import { digits } from './schema-parts.ts'

const DEFAULT_PAGE_SIZE = 50
/** 1 to 200. */
const PAGE_SIZE = /^(?:[1-9]\d?|1\d\d|200)$/

export const pageSize = digits(
  PAGE_SIZE,
  'must be a whole number from 1 to 200',
  DEFAULT_PAGE_SIZE,
).check(describe('from 1 to 200; default 50'))

export const pageQuerySchema = z.strictObject({
  limit: pageSize,
  cursor: z
    .optional(z.uuid('must be a cursor from an earlier page').check(z.toLowerCase()))
    .check(describe('from an earlier page')),
})

export type PageQuery = z.infer<typeof pageQuerySchema>

/** One page, newest first. The last page has no `cursor`. */
export interface Page<Item> {
  readonly items: readonly Item[]
  readonly cursor?: string
}

/** Which records a page has. */
export interface ListFilter<Item> {
  isListed(item: Item): boolean
  /**
   * The reader must learn nothing about other records: a page is shorter than its limit only if it is the
   * last one, and a cursor names a listed record. Default false.
   */
  readonly hidesOthers?: boolean
}

/** Port: records that operators create. Each call throws `Unavailable` if the store fails. */
export interface Records<Item, Order> {
  /** Stores a record atomically: in force in every isolate from the next request on, and listed. */
  create(order: Order): Promise<Item>
  /** Returns undefined if the record does not exist. */
  find(id: string): Promise<Item | undefined>
  list(page: PageQuery, filter?: ListFilter<Item>): Promise<Page<Item>>
  /** Returns false if the record does not exist. */
  remove(id: string): Promise<boolean>
}
