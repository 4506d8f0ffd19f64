/** Finds mistakes in the fields of a route that use the origins of the policy. */
import * as z from 'zod/mini'
import { toDotPath } from 'zod/v4/core'
import type { OriginRouting } from '../../origin/definition.ts'
import { mistakesInTarget } from '../../origin/route-target.ts'
import { withSuggestion } from '../../suggestions/did-you-mean.ts'
import { inEnglish } from '../../validators/english.ts'
import { routingSchema } from '../../validators/origins.ts'

export interface RoutingCheck {
  /** Names of the origins. */
  readonly names: readonly string[]
  /** Reports whether the gateway withholds a response header, by its lower-case name. */
  readonly isWithheld: (name: string) => boolean
}

/** Creates the function that yields the mistakes of a route. */
export function routingCheck({ names, isWithheld }: RoutingCheck) {
  const schema = routingSchema(isWithheld)
  return function* mistakesIn(route: OriginRouting & { readonly path: string }): Generator<string> {
    const { success, error } = z.safeParse(schema, route, inEnglish())
    if (!success) {
      for (const { path, message } of error.issues) yield `${toDotPath(path)}: ${message}`
      return
    }
    const { origin } = route
    if (origin !== undefined && !names.includes(origin)) yield `origin: ${unknown(origin, names)}`
    yield* mistakesInTarget(route)
  }
}

/** Describes an unknown name of an origin. */
export const unknown = (name: string, names: readonly string[]): string =>
  withSuggestion(`unknown origin "${name}"`, name, names)
