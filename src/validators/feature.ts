/** The opt-in features that a policy imports. */
import * as z from 'zod/mini'
import { type Mistake, mistakeAt } from '../problems/mistake.ts'

/** What a function of a feature returns for a field. Only a policy that imports it has it in its bundle. */
export interface Feature<Name extends string> {
  readonly feature: Name
}

/** Accepts only what the function `name` of the module `portcullis/<name>` returned. */
export const featureSchema = <Name extends string>(name: Name) =>
  z.custom<Feature<Name>>((value) => (value as Feature<Name> | null)?.feature === name, {
    error: `must be the result of ${name}(); import { ${name} } from 'portcullis/${name}'`,
    abort: true,
  })

/**
 * The effect of a larger setting: a larger number, further entries, or a switch that is on. `more`: it admits more
 * callers, and without a value the setting admits none. `less`: it admits fewer. `bound`: as `more`, but without a
 * value there is no bound. `none`: it admits the same callers.
 */
export type SettingEffect = 'more' | 'less' | 'bound' | 'none'

/**
 * A feature of the policy's list `features`, or behind one of its fields. Its function creates it; the
 * rest of it is `Feature` of the gateway.
 */
export interface ListedFeature {
  /** The name of its function. */
  readonly name: string
  /** Names of other features of the list that it needs. */
  readonly requires?: readonly string[]
  /** What its function was called with, and the defaults, so that `policy diff` finds changes. Never a secret. */
  readonly settings?: object
  /**
   * What the feature as a whole means: `more` or `less`: with it, the gateway admits more or fewer callers. `none`: the
   * same. Default: it is not known, so that adding and removing it both count as looser.
   */
  readonly presence?: Exclude<SettingEffect, 'bound'> | 'unknown'
  /**
   * What a change of a setting means, by its path: `roles`, or `authentication.acr`; `*` is every name.
   * A setting without one counts as looser.
   */
  readonly effects?: Readonly<Record<string, SettingEffect>>
  /**
   * Yields the mistakes of routes that only this feature can find. Their paths begin with the index of the
   * route.
   */
  mistakesIn?(routes: readonly object[]): Iterable<Mistake>
  /** Returns what an explanation of a request of the route says about the feature. Undefined: nothing. */
  remarkOn?(route: object): string | undefined
  /** Yields mistakes of the list, such as a name that two features share. Their paths begin with the field. */
  conflictsIn?(features: readonly ListedFeature[], routes: readonly object[]): Iterable<Mistake>
}

const isListed = (value: unknown): value is ListedFeature =>
  typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string'

export const listedFeature = z.custom<ListedFeature>(
  isListed,
  "must be the result of the function of a feature, such as operators() from 'portcullis/operators'",
)

/** Yields a mistake for each feature that another one needs, and that the list does not have. */
export function* missingFeatures(features: readonly ListedFeature[]): Generator<Mistake> {
  const listed = new Set(features.map(({ name }) => name))
  for (const { name, requires = [] } of features)
    for (const other of requires)
      if (!listed.has(other))
        yield mistakeAt(
          'missing_feature',
          ['features'],
          `${name}() needs ${other}(); ${importOf(other)}`,
        )
}

/** Yields a mistake for a setting with a value, if no feature of the policy uses it. */
export function* unusedSetting(
  setting: Mistake['path'],
  value: unknown,
  usedBy: readonly string[],
  features: readonly ListedFeature[],
): Generator<Mistake> {
  if (value === undefined || features.some(({ name }) => usedBy.includes(name))) return
  const calls = usedBy.map((name) => `${name}()`)
  const imports = usedBy.map(importOf)
  const needs = `needs ${calls.join(' or ')} in the policy's features; ${imports.join(' or ')}`
  yield mistakeAt('unused_setting', setting, needs)
}

/** The module of a feature has the name of its function, with hyphens. */
function importOf(name: string): string {
  const module = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return `import { ${name} } from 'portcullis/${module}'`
}
