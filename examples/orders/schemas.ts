/** Input schemas of the demo origin's routes. */
import * as z from 'zod/mini'

/** Metres from the centre of the map, on each axis. */
const MAX_COORDINATE = 100_000
const coordinate = z.number().check(z.minimum(-MAX_COORDINATE), z.maximum(MAX_COORDINATE))

export const orderParams = z.strictObject({ id: z.uuid() })

export const orderListQuery = z.strictObject({
  cursor: z.optional(z.string().check(z.minLength(1), z.maxLength(200))),
  /** Digits only: some origins parse `1e1` and `0x10` as numbers, and others do not. */
  limit: z.optional(z.string().check(z.regex(/^(100|[1-9]\d?)$/, 'a whole number from 1 to 100'))),
})

export const newOrder = z.strictObject({
  item: z.string().check(z.minLength(1), z.maxLength(100)),
  quantity: z.int().check(z.minimum(1), z.maximum(1000)),
  position: z.optional(z.tuple([coordinate, coordinate, coordinate])),
})

export const reportPeriod = z
  .strictObject({ from: z.iso.date(), to: z.iso.date() })
  .check(z.refine(({ from, to }) => from <= to, { path: ['to'], error: 'must not be before from' }))
