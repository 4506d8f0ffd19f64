/** Finds contradictions between the parts of a policy. */

import { parametersOf, shadows } from '../http/path-pattern.ts'
import { mistakesInRule } from '../relations/rule-mistakes.ts'
import { demandsPermission } from '../validators/inspect.ts'
import { dropsUnknownKeys } from '../validators/strictness.ts'
import type { LimitDefinition, RevocationDefinition, RouteDefinition } from './definition.ts'
import type { PolicyRelations } from './relations.ts'

/** Yields a mistake for each limit with a lease that can never be spent. */
export function* mistakesInLeases(
  limits: ReadonlyMap<string, LimitDefinition>,
  { maxStalenessMs }: Required<RevocationDefinition>,
): Generator<string> {
  if (maxStalenessMs > 0) return
  for (const [name, { lease }] of limits) {
    if (lease !== undefined)
      yield `limits.${name}.lease: nobody can spend it where revocation.maxStalenessMs is 0`
  }
}

/** Yields the mistakes of the route table. Each message begins with its route. */
export function* mistakesInTable(
  routes: readonly RouteDefinition[],
  limits: ReadonlyMap<string, LimitDefinition>,
  relations: PolicyRelations | undefined,
): Generator<string> {
  for (const [index, route] of routes.entries()) {
    const name = `${route.method} ${route.path}`
    // The first row that matches a request applies.
    const above = routes
      .slice(0, index)
      .find(({ method, path }) => method === route.method && shadows(path, route.path))
    if (above !== undefined) yield `${name}: is never reached, for ${above.path} stands above it`
    if (/^\/-(\/|$)/.test(route.path)) yield `${name}: paths below /-/ are the gateway's own`
    if (/^\/oauth\/(token|revoke|introspect)$/.test(route.path))
      yield `${name}: this path is the gateway's own`
    for (const limit of route.limits ?? []) {
      const definition = limits.get(limit)
      if (definition === undefined) yield `${name}: no limit is called ${limit}`
      else if (route.anonymous && definition.by !== 'address' && typeof definition.by === 'string')
        yield `${name}: anonymous callers have no ${definition.by} to limit ${limit} by`
    }
    if (route.method === 'GET' && route.input?.body !== undefined)
      yield `${name}: a GET has no body to validate`
    if (route.coalesce && route.method !== 'GET') yield `${name}: only a GET can coalesce`
    if (route.coalesce && route.webSocketOrigins !== undefined)
      yield `${name}: a WebSocket is for one client, and cannot coalesce`
    if (route.coalesce && route.forwardAuthorization)
      yield `${name}: what a credential opens is for its bearer alone, and cannot coalesce`
    if (route.method !== 'POST' && route.inspect?.jsonRpc !== undefined)
      yield `${name}: JSON-RPC comes by POST`
    if (route.anonymous && demandsPermission(route.inspect?.jsonRpc))
      yield `${name}: anonymous callers have no permission that inspect.jsonRpc demands`
    for (const mistake of mistakesInRelation(route, relations))
      yield `${name}: relation: ${mistake}`
    for (const [part, schema] of Object.entries(route.input ?? {}))
      if (part !== 'headers' && dropsUnknownKeys(schema))
        yield `${name}: input.${part} drops unknown keys, which would still reach the origin; ` +
          'use z.strictObject, or z.looseObject to let them pass'
  }
}

function* mistakesInRelation(
  { relation, anonymous, path }: RouteDefinition,
  relations: PolicyRelations | undefined,
): Generator<string> {
  if (relation === undefined) return
  if (anonymous) yield 'anonymous callers have no relation to anything'
  if (relations === undefined) yield 'the policy has no relations'
  else yield* mistakesInRule(relation, { ...relations, params: parametersOf(path) })
  if (relations?.authority === 'authzen' && (relation.contextualTuples?.length ?? 0) > 0)
    yield 'AuthZEN has no words for contextualTuples'
}
