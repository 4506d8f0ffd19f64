/** Replaces fields of routes that were generated, by the name of the route. */
import { Misconfigured } from '../../errors.ts'
import type { InputSchemas, RouteDefinition } from '../../policy/definition.ts'
import { didYouMean } from '../../suggestions/did-you-mean.ts'

type NameOf<Route> = Route extends {
  readonly method: infer Method extends string
  readonly path: infer Path extends string
}
  ? `${Method} ${Path}`
  : never

type LimitsOf<Route> = Route extends { readonly limits: readonly (infer Name extends string)[] }
  ? Name
  : never

type OriginsOf<Route> = Route extends { readonly origin: infer Name extends string } ? Name : never

type Optional<Fields> = { readonly [Field in keyof Fields]?: Fields[Field] | undefined }

/**
 * New values of fields. `undefined` removes a field. `permission` removes `anonymous`, and
 * `anonymous` removes `permission` and `relation`. Parts of `input` are replaced one by one.
 */
export interface RouteChange<LimitName extends string = string>
  extends Optional<Omit<RouteDefinition<LimitName>, 'method' | 'path' | 'input'>> {
  readonly input?: Optional<InputSchemas> | undefined
}

/**
 * Returns the routes with the fields of `changes` in place of their own. `null` removes a route.
 * Throws `Misconfigured` for a change of a route that does not exist; the compiler reports it, too.
 *
 * @example
 * ```ts
 * routes: override(routes, {
 *   'GET /orders/:id': { limits: ['standard'] },
 *   'DELETE /orders/:id': null,
 * })
 * ```
 */
export function override<
  const Routes extends readonly RouteDefinition[],
  const Changes extends { readonly [Name in NameOf<Routes[number]>]?: RouteChange | null },
>(
  routes: Routes,
  changes: Changes & Readonly<Record<Exclude<keyof Changes, NameOf<Routes[number]>>, never>>,
): RouteDefinition<
  LimitsOf<Routes[number]> | LimitsOf<Changes[keyof Changes]>,
  OriginsOf<Routes[number]> | OriginsOf<Changes[keyof Changes]>
>[] {
  const byName = new Map<string, RouteChange | null>(Object.entries(changes))
  const names = new Set(routes.map(({ method, path }) => `${method} ${path}`))
  const unknown = [...byName.keys()].filter((name) => !names.has(name))
  if (unknown.length > 0)
    throw new Misconfigured(
      'The policy',
      unknown.map((name) => {
        const remedy = didYouMean(name, [...names]) ?? 'remove the change'
        const message = `override: there is no route ${name}; ${remedy}`
        return { code: 'unknown_route', path: ['routes'], message, given: name, known: [...names] }
      }),
    )
  return routes.flatMap((route) => {
    const change = byName.get(`${route.method} ${route.path}`)
    if (change === null) return []
    return [change === undefined ? route : changed(route, change)]
  }) as RouteDefinition<never, never>[]
}

function changed(route: RouteDefinition, change: RouteChange): RouteDefinition {
  const replaced: Record<string, unknown> = {}
  if (change.anonymous) Object.assign(replaced, { permission: undefined, relation: undefined })
  if (change.permission !== undefined) replaced.anonymous = undefined
  const input = change.input && present({ ...route.input, ...change.input })
  return present({ ...route, ...replaced, ...change, ...(input && { input }) }) as RouteDefinition
}

const present = (fields: object) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
