/** The regular expressions that a zod schema runs. */
import { $ZodType } from 'zod/v4/core'

export interface UsedPattern {
  readonly pattern: RegExp
  /** The longest text that the pattern is run on: that of an earlier check with `abort`. */
  readonly maxLength: number | undefined
}

interface Definition {
  readonly type?: string
  readonly getter?: () => $ZodType
  readonly checks?: readonly { readonly _zod: { readonly def: CheckDefinition } }[]
  readonly pattern?: unknown
  readonly format?: string
  readonly abort?: boolean
}

interface CheckDefinition {
  readonly check: string
  readonly maximum?: number
  readonly length?: number
  readonly abort?: boolean
  readonly pattern?: unknown
  readonly format?: string
}

/** Patterns of zod's own formats, such as `z.email()`, are not those of the policy's author. */
const AUTHORED: ReadonlySet<unknown> = new Set(['regex', 'template_literal'])

/** Yields the patterns that the author of a schema wrote, also those of the schemas in it. */
export function* patternsIn(
  schema: $ZodType,
  seen: Set<$ZodType> = new Set(),
): Generator<UsedPattern> {
  if (seen.has(schema)) return
  seen.add(schema)
  const definition = schema._zod.def as unknown as Definition
  let maxLength: number | undefined
  if (definition.pattern instanceof RegExp && AUTHORED.has(definition.format))
    yield { pattern: definition.pattern, maxLength }
  for (const { _zod } of definition.checks ?? []) {
    const { check, maximum, length, abort, pattern, format } = _zod.def
    if (pattern instanceof RegExp && AUTHORED.has(format)) yield { pattern, maxLength }
    const bound = check === 'max_length' ? maximum : check === 'length_equals' ? length : undefined
    if (bound !== undefined && abort === true)
      maxLength = Math.min(bound, maxLength ?? Number.POSITIVE_INFINITY)
  }
  for (const part of partsOf(definition)) yield* patternsIn(part, seen)
}

function partsOf({ type, getter, checks: _, ...definition }: Definition): readonly $ZodType[] {
  const inner = Object.values(definition).flatMap(schemasIn)
  return type === 'lazy' && getter !== undefined ? [getter(), ...inner] : inner
}

function schemasIn(value: unknown): readonly $ZodType[] {
  if (value instanceof $ZodType) return [value]
  if (typeof value !== 'object' || value === null || value instanceof RegExp) return []
  return Object.values(value).filter((one) => one instanceof $ZodType)
}
