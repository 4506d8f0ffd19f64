/**
 * Values that a path, a query or a header contains as text. Text that is not of the type stays text,
 * so that the schema refuses it.
 */
import * as z from 'zod/mini'
import type { $ZodType } from 'zod/v4/core'
import { parseStrictJson } from '../../http/strict-json.ts'

type Decoded<Schema extends $ZodType> = z.ZodMiniType<z.output<Schema>>

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

function decoded<Schema extends $ZodType>(
  decode: (text: string) => unknown,
  schema: Schema,
): Decoded<Schema> {
  const read = z.transform((input) => (typeof input === 'string' ? decode(input) : input))
  return z.pipe(read, schema as z.core.$ZodType<z.output<Schema>, unknown>) as Decoded<Schema>
}

/** Parses a number of JSON. */
export const numberText = <Schema extends $ZodType>(schema: Schema): Decoded<Schema> =>
  decoded((text) => (NUMBER.test(text) ? Number(text) : text), schema)

/** Parses `true` and `false`. */
export const booleanText = <Schema extends $ZodType>(schema: Schema): Decoded<Schema> =>
  decoded((text) => (text === 'true' ? true : text === 'false' ? false : text), schema)

/**
 * Parses JSON. A text that other parsers may read differently is refused: it stays text. So is one with the
 * name `__proto__`, which zod does not check.
 */
export const jsonText = <Schema extends $ZodType>(schema: Schema): Decoded<Schema> =>
  decoded((text) => {
    try {
      return parseStrictJson(text, { without: '__proto__' })
    } catch {
      return text
    }
  }, schema)

export interface ListRules {
  readonly separator?: string
  /** Type of the items. Default: text. */
  readonly of?: 'number' | 'boolean'
}

/** Parses a list. Empty text is a list without items. */
export function listText<Schema extends $ZodType>(
  schema: Schema,
  { separator = ',', of }: ListRules = {},
): Decoded<Schema> {
  const item = of && z.array((of === 'number' ? numberText : booleanText)(z.unknown()))
  return decoded((text) => {
    const items = text === '' ? [] : text.split(separator)
    return item === undefined ? items : z.parse(item, items)
  }, schema)
}

const texts = () => z.array(z.string())

/**
 * Reads a query parameter that may be repeated: the list of its values. `separator` has no effect.
 */
export function repeated<Schema extends $ZodType>(
  schema: Schema,
  { of }: ListRules = {},
): Decoded<Schema> {
  const item = of && z.array((of === 'number' ? numberText : booleanText)(z.unknown()))
  const read = decodedList((items) => (item === undefined ? items : z.parse(item, items)), schema)
  return z.pipe(texts(), read) as unknown as Decoded<Schema>
}

/** Reads a query parameter that may be repeated, if it is given once: its value. */
export function single<Schema extends $ZodType>(schema: Schema): Decoded<Schema> {
  const read = decodedList(([item]) => item, schema)
  return z.pipe(texts().check(z.length(1)), read) as unknown as Decoded<Schema>
}

const decodedList = <Schema extends $ZodType>(
  decode: (items: string[]) => unknown,
  schema: Schema,
) =>
  z.pipe(
    z.transform((items: string[]) => decode(items)),
    schema as z.core.$ZodType<z.output<Schema>, unknown>,
  )

/** Removes the fixed parts of a path segment: `1.json` is `1` for the suffix `.json`. */
export const partText = <Schema extends $ZodType>(
  prefix: string,
  suffix: string,
  schema: Schema,
): Decoded<Schema> =>
  decoded((text) => text.slice(prefix.length, text.length - suffix.length), schema)
