/** Rules of JSON Schema that zod does not have, or has with another meaning. */
import * as z from 'zod/mini'
import type { $ZodType } from 'zod/v4/core'

type Schemas = readonly $ZodType[]
type All<Parts extends Schemas> = Parts extends readonly [
  infer First extends $ZodType,
  ...infer Rest extends Schemas,
]
  ? z.output<First> & All<Rest>
  : unknown

export type JsonType = 'string' | 'number' | 'boolean' | 'null' | 'array' | 'object'

/** Accepts every JSON value. Unlike `z.unknown()`, it does not accept a missing member. */
export const json = (): z.ZodMiniType<unknown> =>
  z.custom((value) => value !== undefined, 'Required')

/** Accepts a number without a fraction. Unlike zod's `int`, it accepts numbers above 2^53. */
export const integer = (): z.ZodMiniNumber<number> =>
  z.number().check(z.refine(Number.isInteger, 'Must be a whole number'))

/** Accepts every JSON value except those of some types. */
export const otherThan = (...types: readonly JsonType[]): z.ZodMiniType<unknown> =>
  z.custom(
    (value) => value !== undefined && !types.includes(typeOf(value)),
    'Must be of another type',
  )

/** Requires at least so many characters (Unicode code points, not UTF-16 code units). */
export const minChars = (count: number): z.core.$ZodCheck<string> =>
  z.refine((text) => hasChars(text, count), {
    error: `Must have at least ${count} characters`,
    abort: true,
  })

/**
 * Requires at most so many characters (Unicode code points, not UTF-16 code units). Later checks, such
 * as patterns, do not run on longer text.
 */
export const maxChars = (count: number): z.core.$ZodCheck<string> =>
  z.refine((text) => !hasChars(text, count + 1), {
    error: `Must have at most ${count} characters`,
    abort: true,
  })

/** Requires that no two items are equal. Takes time linear in the size of the list. */
export const uniqueItems = (): z.core.$ZodCheck<readonly unknown[]> =>
  z.refine(
    (items) => new Set(items.map(canonical)).size === items.length,
    'Must not have equal items',
  )

/** Accepts the values that are equal to one of these. */
export function anyValueOf(values: readonly unknown[]): z.ZodMiniType<unknown> {
  const texts = new Set(values.map(canonical))
  return z.custom(
    (value) => value !== undefined && texts.has(canonical(value)),
    'Must be one of the values of the enumeration',
  )
}

/**
 * Accepts the values that every schema accepts. Unlike `z.intersection`, each schema decides alone
 * about unknown keys.
 */
export function allOf<const Parts extends Schemas>(parts: Parts): z.ZodMiniType<All<Parts>> {
  const check = z.check<unknown>(({ value: input, issues }) => {
    for (const part of parts) {
      const { error } = z.safeParse(part, input)
      for (const { path, message } of error?.issues ?? [])
        issues.push({ code: 'custom', input, inst: check, path: [...path], message })
    }
  })
  return json().check(check) as z.ZodMiniType<All<Parts>>
}

/** Accepts the values that exactly one schema accepts. */
export function oneOf<const Parts extends Schemas>(
  parts: Parts,
): z.ZodMiniType<z.output<Parts[number]>> {
  return z.custom<z.output<Parts[number]>>((value) => {
    let matches = 0
    for (const part of parts) {
      if (accepts(part, value)) matches += 1
      if (matches > 1) return false
    }
    return matches === 1
  }, 'Must match exactly one of the alternatives')
}

/** Accepts the JSON values that a schema does not accept. */
export const not = (schema: $ZodType): z.ZodMiniType<unknown> =>
  z.custom((value) => value !== undefined && !accepts(schema, value), 'Must not match')

export const accepts = (schema: $ZodType, value: unknown): boolean =>
  z.safeParse(schema, value).success

function typeOf(value: unknown): JsonType {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : (typeof value as JsonType)
}

/** Reports whether a text has at least `count` code points. Counts only texts that are close. */
function hasChars(text: string, count: number): boolean {
  if (text.length < count) return false
  if (text.length >= 2 * count) return true
  let chars = 0
  for (const _ of text) chars += 1
  return chars >= count
}

/** Returns the same text for equal values: JSON with sorted names. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? ''
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`
}
