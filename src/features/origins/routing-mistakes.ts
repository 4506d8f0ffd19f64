/** Finds mistakes in the fields of a route that use the origins of the policy. */
import type { OriginRouting } from '../../origin/definition.ts'
import { mistakesInTarget } from '../../origin/route-target.ts'
import { type Mistake, mistakeAt, withPath } from '../../problems/mistake.ts'
import { withSuggestion } from '../../suggestions/did-you-mean.ts'
import { issuesOf, mistakeOf } from '../../validators/configuration.ts'
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
  return function* mistakesIn(
    route: OriginRouting & { readonly path: string },
  ): Generator<Mistake> {
    const issues = issuesOf(schema, route)
    yield* issues.map((issue) => withPath(mistakeOf(issue)))
    if (issues.length > 0) return
    const { origin } = route
    if (origin !== undefined && !names.includes(origin))
      yield withPath(unknownOrigin(['origin'], origin, names))
    yield* mistakesInTarget(route)
  }
}

/** Creates the mistake for the name of an origin that the policy does not have. */
export const unknownOrigin = (
  path: Mistake['path'],
  given: string,
  known: readonly string[],
): Mistake =>
  mistakeAt('unknown_origin', path, withSuggestion(`unknown origin "${given}"`, given, known), {
    given,
    known,
  })
