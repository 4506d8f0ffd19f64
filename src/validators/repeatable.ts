/** Query parameters that a schema reads as a list. */
import type { $ZodType } from 'zod/v4/core'

interface Parts {
  readonly type: string
  readonly shape?: Readonly<Record<string, $ZodType>>
  readonly innerType?: $ZodType
  readonly in?: $ZodType
  readonly left?: $ZodType
  readonly right?: $ZodType
  readonly options?: readonly $ZodType[]
}

const NONE: ReadonlySet<string> = new Set()

const partsOf = (schema: $ZodType) => schema._zod.def as unknown as Parts

/**
 * Returns the names of the members whose input is an array: `z.array(z.string())`. A request may
 * repeat these parameters, and no others.
 */
export function repeatableNames(schema: $ZodType): ReadonlySet<string> {
  const { shape, innerType, in: input, left, right } = partsOf(schema)
  if (shape !== undefined)
    return new Set(Object.entries(shape).flatMap(([name, member]) => (isList(member) ? name : [])))
  if (left !== undefined && right !== undefined)
    return new Set([...repeatableNames(left), ...repeatableNames(right)])
  const inner = innerType ?? input
  return inner === undefined ? NONE : repeatableNames(inner)
}

function isList(schema: $ZodType): boolean {
  const { type, innerType, in: input, options } = partsOf(schema)
  if (type === 'array') return true
  if (options !== undefined) return options.every(isList)
  const inner = innerType ?? input
  return inner !== undefined && isList(inner)
}
