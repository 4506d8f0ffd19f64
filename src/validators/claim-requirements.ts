/** Rules for the claims of a token: the accepted values of each claim. */
import * as z from 'zod/mini'
import { namePattern } from './name-pattern.ts'
import { text } from './schema-parts.ts'

export const MAX_NAMES = 100

export const list = <Item extends z.core.$ZodType>(item: Item) =>
  z.array(item).check(z.minLength(1), z.maxLength(MAX_NAMES))

/** A value that a claim may have: a pattern, or exactly this number or boolean; null: no claim. */
const claimValue = z.union([namePattern, z.number(), z.boolean(), z.null()])

export const requirements = z.record(text(512), z.union([claimValue, list(claimValue)]))
