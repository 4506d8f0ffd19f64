/** What the features of a policy declare, and what is wrong with their variables. */
import * as z from 'zod/mini'
import { type Feature, listFeatures } from '../../src/gateway/feature.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { textOf } from '../../src/problems/mistake.ts'
import { mistakeOf } from '../../src/validators/configuration.ts'
import { inEnglish } from '../../src/validators/english.ts'

type Values = Readonly<Record<string, string | undefined>>

export interface DeclaredFeature {
  readonly name: string
  /** The variables that the gateway itself does not have, each with its mistake, if it has one. */
  readonly variables: readonly {
    readonly name: string
    readonly isSet: boolean
    readonly mistake?: string
  }[]
  /** Beginnings of the names of its keys, without the prefix of the gateway. */
  readonly keys: readonly string[]
}

/** Returns the features with variables that are not in `known`, or with keys. Checks the variables. */
export const declaredFeatures = (
  policy: Policy,
  values: Values,
  known: Readonly<Record<string, unknown>>,
): readonly DeclaredFeature[] =>
  listFeatures(policy)
    .map((feature) => ({
      name: feature.name,
      variables: variablesOf(feature, values, known),
      keys: feature.keys ?? [],
    }))
    .filter(({ variables, keys }) => variables.length + keys.length > 0)

function variablesOf(
  { variables }: Feature,
  values: Values,
  known: Readonly<Record<string, unknown>>,
): DeclaredFeature['variables'] {
  return Object.entries(variables?.shape ?? {})
    .filter(([name]) => !Object.hasOwn(known, name))
    .map(([name, schema]) => {
      // An empty value counts as absent, as in the environment of the gateway.
      const value = values[name] || undefined
      const [issue] = z.safeParse(schema, value, inEnglish()).error?.issues ?? []
      const isSet = value !== undefined
      if (issue === undefined) return { name, isSet }
      return {
        name,
        isSet,
        mistake: isSet ? textOf(mistakeOf(issue, [name])) : `${name}: is missing`,
      }
    })
}
