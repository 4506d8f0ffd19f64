/** Rules of JSON Schema for the members of an object that zod does not have. */
import * as z from 'zod/mini'
import type { $ZodType } from 'zod/v4/core'
import { accepts } from './values.ts'

export interface MemberRules {
  /**
   * Members by name. Only own members count: with `z.looseObject`, an empty object has the member
   * `constructor`.
   */
  readonly named?: Readonly<Record<string, $ZodType>>
  /** Members whose name matches an expression. */
  readonly patterns?: readonly (readonly [RegExp, $ZodType])[]
  /** Names that `rest` does not apply to, although nothing else here names them. */
  readonly known?: readonly string[]
  /** All other members. False: there must be none. */
  readonly rest?: $ZodType | false
  /** Names of all members. */
  readonly names?: $ZodType
}

/** Checks members by their names. */
export function members(rules: MemberRules): z.core.$ZodCheck<object> {
  const { patterns = [], known = [], rest, names } = rules
  const named = new Map(Object.entries(rules.named ?? {}))
  const others = new Set(known)
  const check = z.check<object>(({ value, issues }) => {
    const refuse = (name: string, message: string) =>
      issues.push({ code: 'custom', input: value, inst: check, path: [name], message })
    for (const [name, member] of Object.entries(value)) {
      const own = named.get(name)
      const matching = patterns
        .filter(([pattern]) => pattern.test(name))
        .map(([, schema]) => schema)
      const isOther = own === undefined && matching.length === 0 && !others.has(name)
      const schemas = [
        ...(own === undefined ? [] : [own]),
        ...matching,
        ...(isOther && rest ? [rest] : []),
      ]
      if (isOther && rest === false) refuse(name, 'Unknown keys are not allowed')
      else if (names !== undefined && !accepts(names, name)) refuse(name, 'Invalid name')
      else if (!schemas.every((schema) => accepts(schema, member))) refuse(name, 'Invalid value')
    }
  })
  return check
}

/** Requires members. */
export const hasKeys = (...names: readonly string[]): z.core.$ZodCheck<object> =>
  z.refine(
    (value) => names.every((name) => Object.hasOwn(value, name)),
    `Must have the members ${names.join(', ')}`,
  )

/** Requires that an object with a member also has others. */
export const dependentKeys = (
  dependencies: Readonly<Record<string, readonly string[]>>,
): z.core.$ZodCheck<object> =>
  z.refine(
    (value) =>
      Object.entries(dependencies).every(
        ([name, others]) =>
          !Object.hasOwn(value, name) || others.every((other) => Object.hasOwn(value, other)),
      ),
    'A member requires another member that is missing',
  )

export const minMembers = (count: number): z.core.$ZodCheck<object> =>
  z.refine((value) => Object.keys(value).length >= count, `Must have at least ${count} members`)

export const maxMembers = (count: number): z.core.$ZodCheck<object> =>
  z.refine((value) => Object.keys(value).length <= count, `Must have at most ${count} members`)
