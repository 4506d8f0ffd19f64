/** Finds contradictions between the parts of a policy. */

import { unverifiedSchemes } from '../access/tokens/credential.ts'
import { coversHost } from '../http/host.ts'
import { parametersOf, shadows } from '../http/path-pattern.ts'
import { missingFeatures, unusedSetting } from '../validators/feature.ts'
import { permissionsIn } from '../validators/inspect.ts'
import { originRouting } from '../validators/policy.ts'
import { dropsUnknownKeys } from '../validators/strictness.ts'
import type {
  LimitDefinition,
  NamedLimit,
  PolicyDefinition,
  RevocationDefinition,
  RouteDefinition,
} from './definition.ts'
import { limitsNamed } from './limits.ts'
import type { PolicyOrigins } from './origins.ts'
import type { PathIndex } from './path-index.ts'
import type { PolicyRelations } from './relations.ts'
import { nameOfRoute, OPERATORS_LIMIT, pathOfRoute } from './route.ts'

export function* mistakesInLeases(
  limits: ReadonlyMap<string, LimitDefinition>,
  { maxStalenessMs }: Required<RevocationDefinition>,
): Generator<string> {
  if (maxStalenessMs > 0) return
  for (const [name, { lease }] of limits) {
    if (lease !== undefined)
      yield `limits.${name}.lease: requires revocation.maxStalenessMs above 0; without it, every request calls Redis`
  }
}

/** Yields a mistake for each setting of a feature that is missing in the list `features`. */
export function* mistakesInFeatures({
  tokens = {},
  limits,
  routes,
  features = [],
}: PolicyDefinition<string, string>): Generator<string> {
  // Operators mint access tokens, and their revocations must outlast the longest session.
  for (const field of ['accessTokenSeconds', 'sessionSeconds'] as const) {
    const usedBy = ['authorizationServer', 'operators'] as const
    yield* unusedSetting(`tokens.${field}`, tokens[field], usedBy, features)
  }
  for (const field of ['exchangeLimits', 'refreshGraceSeconds'] as const)
    yield* unusedSetting(`tokens.${field}`, tokens[field], ['authorizationServer'], features)
  const withSession = routes.find(({ session }) => session !== undefined)
  yield* unusedSetting('routes: session', withSession, ['signIn'], features)
  yield* missingFeatures(features)
  for (const feature of features) yield* feature.mistakesIn?.(routes) ?? []
  const isForRoutes = routes.some((route) => route.limits?.includes(OPERATORS_LIMIT))
  if (!isForRoutes && Object.hasOwn(limits, OPERATORS_LIMIT))
    yield* unusedSetting(`limits.${OPERATORS_LIMIT}`, true, ['operators'], features)
}

/** What the rows of the route table refer to. */
interface References {
  /** Names of all limits. */
  readonly names: readonly string[]
  /** Those without mistakes. */
  readonly limits: ReadonlyMap<string, NamedLimit>
  /** Null if they have mistakes. */
  readonly relations: PolicyRelations | null | undefined
  /** Null if they have mistakes. */
  readonly origins: PolicyOrigins | null | undefined
}

/** Yields the mistakes of a row below others. Each message begins with the route. */
export function* mistakesInRow(
  route: RouteDefinition,
  rowsAbove: PathIndex<RouteDefinition>,
  { names, limits, relations, origins }: References,
): Generator<string> {
  const name = nameOfRoute(route)
  // The first row that matches a request applies.
  const above = rowsAbove
    .similarTo(route)
    .find(([, { host, path }]) => coversHost(host, route.host) && shadows(path, route.path))
  if (above !== undefined)
    yield `${name}: is unreachable, because ${pathOfRoute(above[1])} above it matches the same requests`
  for (const mistake of mistakesInOrigin(route, origins)) yield `${name}: ${mistake}`
  if (/^\/-(\/|$)/.test(route.path)) yield `${name}: paths below /-/ are reserved for the gateway`
  if (/^\/oauth\/(token|revoke|introspect)$/.test(route.path))
    yield `${name}: this path is reserved for the gateway`
  for (const limit of route.limits ?? []) {
    const by = limitsNamed(limits, limit)[0]?.by
    if (!names.includes(limit)) yield `${name}: unknown limit ${limit}`
    else if (route.anonymous && by !== 'address' && typeof by === 'string')
      yield `${name}: anonymous callers have no ${by} to limit ${limit} by`
  }
  for (const limit of route.cors?.limits ?? [])
    if (!names.includes(limit)) yield `${name}: cors.limits: unknown limit ${limit}`
  if (route.method === 'GET' && route.input?.body !== undefined)
    yield `${name}: input.body is not possible, because a GET has no body`
  if (route.coalesce && route.method !== 'GET') yield `${name}: coalesce requires GET`
  if (route.coalesce && route.webSocketOrigins !== undefined)
    yield `${name}: coalesce cannot be combined with webSocketOrigins`
  if (route.coalesce && route.forwardAuthorization)
    yield `${name}: coalesce cannot be combined with forwardAuthorization`
  if (Array.isArray(route.forwardAuthorization) && !route.anonymous)
    for (const scheme of unverifiedSchemes(route.forwardAuthorization))
      yield `${name}: forwardAuthorization: ${scheme} requires anonymous: true, because only the origin verifies it`
  if (route.method !== 'POST' && route.inspect?.jsonRpc !== undefined)
    yield `${name}: inspect.jsonRpc requires POST`
  if (route.anonymous && permissionsIn(route.inspect?.jsonRpc).length > 0)
    yield `${name}: inspect.jsonRpc requires a permission, and anonymous callers have none`
  for (const mistake of route.mcp?.mistakesIn(route, { names, relations }) ?? [])
    yield `${name}: ${mistake}`
  for (const mistake of mistakesInRelation(route, relations)) yield `${name}: relation: ${mistake}`
  for (const [part, schema] of Object.entries(route.input ?? {}))
    if (part !== 'headers' && dropsUnknownKeys(schema))
      yield `${name}: input.${part} drops unknown keys, which would still reach the origin; ` +
        'use z.strictObject, or z.looseObject to allow them'
}

function* mistakesInRelation(
  { relation, anonymous, path }: RouteDefinition,
  relations: References['relations'],
): Generator<string> {
  if (relation === undefined || relations === null) return
  if (anonymous)
    yield 'cannot be combined with anonymous, because anonymous callers have no relations'
  if (relations === undefined) yield requiresField('relations')
  else yield* relations.mistakesIn(relation, parametersOf(path))
  const authority = relations?.authority
  const isAuthzen = typeof authority === 'object' && authority.feature === 'authzen'
  if (isAuthzen && (relation.contextualTuples?.length ?? 0) > 0)
    yield 'contextualTuples are not supported by AuthZEN'
}

function* mistakesInOrigin(
  route: RouteDefinition,
  origins: References['origins'],
): Generator<string> {
  if (origins === null) return
  if (origins !== undefined) yield* origins.mistakesIn(route)
  else
    for (const field in originRouting)
      if (field in route) yield `${field}: ${requiresField('origins')}`
}

const requiresField = (field: string) =>
  `requires the field ${field} of the policy; import { ${field} } from 'portcullis/${field}'`
