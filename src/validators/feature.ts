/** The opt-in features that a policy imports. */
import * as z from 'zod/mini'

/** What the function of a feature returns. Only a policy that imports it has it in its bundle. */
export interface Feature<Name extends string> {
  readonly feature: Name
}

/** Accepts only what the function `name` of the module `portcullis/<name>` returned. */
export const featureSchema = <Name extends string>(name: Name) =>
  z.custom<Feature<Name>>((value) => (value as Feature<Name> | null)?.feature === name, {
    error: `must be the result of ${name}(); import { ${name} } from 'portcullis/${name}'`,
    abort: true,
  })

/** The modules of the features in the policy's list `features`, by the name of their function. */
const LISTED = {
  operators: 'portcullis/operators',
  authorizationServer: 'portcullis/authorization-server',
  authorizationCode: 'portcullis/authorization-code',
  signIn: 'portcullis/sign-in',
  openapi: 'portcullis/openapi',
  otlp: 'portcullis/otlp',
  introspection: 'portcullis/introspection',
} as const

/** A feature of the policy's list `features`. */
export interface ListedFeature extends Feature<keyof typeof LISTED> {
  /** Yields the mistakes of routes that only this feature can find. */
  mistakesIn?(routes: readonly object[]): Iterable<string>
}

export const listedFeature = z.custom<ListedFeature>(
  (value) => Object.hasOwn(LISTED, (value as ListedFeature | null)?.feature ?? ''),
  `must be the result of ${Object.entries(LISTED)
    .map(([name, module]) => `${name}() from '${module}'`)
    .join(' or ')}`,
)

/** Yields a mistake for a setting with a value, if no feature of the policy uses it. */
export function* unusedSetting(
  setting: string,
  value: unknown,
  usedBy: readonly ListedFeature['feature'][],
  features: readonly ListedFeature[],
): Generator<string> {
  if (value === undefined || features.some(({ feature }) => usedBy.includes(feature))) return
  const calls = usedBy.map((name) => `${name}()`)
  const imports = usedBy.map((name) => `import { ${name} } from '${LISTED[name]}'`)
  yield `${setting}: needs ${calls.join(' or ')} in the policy's features; ${imports.join(' or ')}`
}
