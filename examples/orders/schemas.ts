/** Input schemas of the demo origin's routes. */
import * as z from 'zod'

/** Metres from the centre of the map, on each axis. */
const MAX_COORDINATE = 100_000
const coordinate = z.number().min(-MAX_COORDINATE).max(MAX_COORDINATE)

export const orderParams = z.strictObject({ id: z.uuid() })

export const orderListQuery = z.strictObject({
  cursor: z.string().min(1).max(200).optional(),
  /** Digits only: some origins parse `1e1` and `0x10` as numbers, and others do not. */
  limit: z
    .string()
    .regex(/^(100|[1-9]\d?)$/, 'a whole number from 1 to 100')
    .optional(),
})

export const newOrder = z.strictObject({
  item: z.string().min(1).max(100),
  quantity: z.int().min(1).max(1000),
  position: z.tuple([coordinate, coordinate, coordinate]).optional(),
})

export const reportPeriod = z
  .strictObject({ from: z.iso.date(), to: z.iso.date() })
  .refine(({ from, to }) => from <= to, { path: ['to'], error: 'must not be before from' })
