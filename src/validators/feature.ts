/** Schema of the opt-in features that a policy imports. */
import * as z from './zod.ts'

/**
 * What the function of a feature returns. A policy that does not import the function does not have
 * the feature's code in its bundle.
 */
export interface Feature<Name extends string> {
  readonly feature: Name
}

/**
 * Accepts only what the function `name` of the module `portcullis/<name>` returned. The message
 * names the import, because settings alone do not contain the feature's code.
 */
export const featureSchema = <Name extends string>(name: Name) =>
  z.custom<Feature<Name>>((value) => (value as Feature<Name> | null)?.feature === name, {
    error: `must be the result of ${name}(); import { ${name} } from 'portcullis/${name}'`,
    abort: true,
  })
