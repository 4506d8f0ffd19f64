/** Schemas of plans and quotas. */
import * as z from 'zod/mini'
import { limitBy, limitInText, limitWindow, onUnavailable } from '../../validators/limit.ts'
import { modeSchema } from '../../validators/mode.ts'
import { LIMIT_NAME } from '../../validators/names.ts'
import { integer, wholeNumber } from '../../validators/schema-parts.ts'
import type { AllowanceDefinition, RateDefinition } from './definition.ts'

const MAX_UNITS = 1_000_000_000

const rateInText = (value: unknown): unknown => {
  if (typeof value !== 'string') return value
  const rate = limitInText(value)
  return rate && { limit: rate.limit, windowSeconds: rate.windowSeconds }
}

const rate = z.pipe(
  z.transform(rateInText),
  z.strictObject(
    limitWindow,
    'must be a rate such as 100/min, or an object with limit and windowSeconds',
  ),
)

const rates = z.pipe(
  z.transform((value) => (Array.isArray(value) ? value : [value])),
  z.array(rate).check(
    z.minLength(1),
    z.refine(
      (list) => new Set(list.map(({ windowSeconds }) => windowSeconds)).size === list.length,
      'must not contain two rates with the same window',
    ),
  ),
)

const allowance = {
  rate: z.optional(rates),
  perDay: z.optional(wholeNumber(1, MAX_UNITS)),
  perMonth: z.optional(wholeNumber(1, MAX_UNITS)),
  concurrency: z.optional(wholeNumber(1, 100_000)),
}

const isAllowance = z.refine((value) => {
  const { rate, perDay, perMonth, concurrency } = value as AllowanceDefinition
  return (rate ?? perDay ?? perMonth ?? concurrency) !== undefined
}, 'must have rate, perDay, perMonth or concurrency')

const metered = {
  by: z.optional(limitBy),
  onUnavailable: z.optional(onUnavailable),
  mode: z.optional(modeSchema),
  cost: z.optional(integer().check(z.minimum(1))),
  slotSeconds: z.optional(wholeNumber(5, 3_600)),
}

/** A rate in the form of text, or an object. */
const plan = z.pipe(
  z.transform((value) => (typeof value === 'string' ? { rate: value } : value)),
  z.strictObject(allowance).check(isAllowance),
)

export const quotasSchema = z.strictObject({ ...metered, ...allowance }).check(isAllowance)

export const plansSchema = z.strictObject({
  ...metered,
  plans: z
    .record(z.string().check(z.regex(LIMIT_NAME)), plan)
    .check(z.refine((plans) => Object.keys(plans).length > 0, 'must have at least one plan')),
  default: z.string(),
  planBy: z.optional(z.array(z.enum(['key', 'subject', 'client', 'tenant', 'claim']))),
})

/** Returns the rates of an allowance that has been checked. */
export function ratesOf({ rate = [] }: AllowanceDefinition): readonly RateDefinition[] {
  const list = Array.isArray(rate) ? rate : [rate]
  return list.map((each) => rateInText(each) as RateDefinition)
}
