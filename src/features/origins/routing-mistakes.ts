/** Finds mistakes in the fields of a route that use the origins of the policy. */
import type { OriginDefinition } from '../../origin/definition.ts'
import type { RoutingInput } from '../../policy/origins.ts'
import { type Mistake, mistakeAt, withPath } from '../../problems/mistake.ts'
import { withSuggestion } from '../../suggestions/did-you-mean.ts'
import { issuesOf, mistakeOf } from '../../validators/configuration.ts'
import { mistakesInTarget } from './route-target.ts'
import { routingSchema } from './schema.ts'

export interface RoutingCheck {
  readonly origins: ReadonlyMap<string, OriginDefinition>
  /** Reports whether the gateway withholds a response header, by its lower-case name. */
  readonly isWithheld: (name: string) => boolean
}

/** Creates the function that yields the mistakes of a route. */
export function routingCheck({ origins, isWithheld }: RoutingCheck) {
  const schema = routingSchema(isWithheld)
  const names = [...origins.keys()]
  return function* mistakesIn(route: RoutingInput): Generator<Mistake> {
    const issues = issuesOf(schema, route)
    yield* issues.map((issue) => withPath(mistakeOf(issue)))
    if (issues.length > 0) return
    const { origin } = route
    if (origin !== undefined && !names.includes(origin))
      yield withPath(unknownOrigin(['origin'], origin, names))
    yield* mistakesInTarget(route)
    const { credentials, canary } = origins.get(origin ?? '') ?? {}
    yield* credentials?.conflictsWith(route) ?? []
    if (route.credentials === undefined) return
    const other = credentials === undefined ? canary && 'a canary' : 'credentials'
    if (other !== undefined)
      yield mistakeAt(
        'conflict',
        ['credentials'],
        `credentials: the origin ${origin} has ${other}; set the credentials in origins only`,
      )
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
