/** Finds contradictions between the parts of a policy. */

import { unverifiedSchemes } from '../access/tokens/credential.ts'
import { coversHost } from '../http/host.ts'
import { parametersOf, shadows } from '../http/path-pattern.ts'
import {
  type Mistake,
  type MistakeCode,
  mistakeAt,
  mistakeWithin,
  withPath,
} from '../problems/mistake.ts'
import { missingFeatures, unusedSetting } from '../validators/feature.ts'
import { permissionsIn } from '../validators/inspect.ts'
import { originRouting } from '../validators/policy.ts'
import { dropsUnknownKeys } from '../validators/strictness.ts'
import { mistakesInAuthentication } from './authentication.ts'
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
import { OPERATORS_LIMIT, pathOfRoute } from './route.ts'

export function* mistakesInLeases(
  limits: ReadonlyMap<string, LimitDefinition>,
  { maxStalenessMs }: Required<RevocationDefinition>,
): Generator<Mistake> {
  if (maxStalenessMs > 0) return
  for (const [name, { lease }] of limits) {
    if (lease !== undefined)
      yield mistakeAt(
        'missing',
        ['limits', name, 'lease'],
        'requires revocation.maxStalenessMs above 0; without it, every request calls Redis',
      )
  }
}

/** Yields a mistake for each setting of a feature that is missing in the list `features`. */
export function* mistakesInFeatures({
  tokens = {},
  limits,
  routes,
  features = [],
}: PolicyDefinition<string, string>): Generator<Mistake> {
  // Operators mint access tokens, and their revocations must outlast the longest session.
  for (const field of ['accessTokenSeconds', 'sessionSeconds'] as const) {
    const usedBy = ['authorizationServer', 'operators'] as const
    yield* unusedSetting(['tokens', field], tokens[field], usedBy, features)
  }
  for (const field of ['exchangeLimits', 'refreshGraceSeconds'] as const)
    yield* unusedSetting(['tokens', field], tokens[field], ['authorizationServer'], features)
  const withSession = routes.findIndex(({ session }) => session !== undefined)
  if (withSession >= 0)
    yield* unusedSetting(['routes', withSession, 'session'], true, ['signIn'], features)
  yield* missingFeatures(features)
  for (const feature of features)
    for (const mistake of feature.mistakesIn?.(routes) ?? [])
      yield { ...mistake, path: ['routes', ...mistake.path] }
  for (const feature of features) yield* feature.conflictsIn?.(features, routes) ?? []
  const isForRoutes = routes.some((route) => route.limits?.includes(OPERATORS_LIMIT))
  if (!isForRoutes && Object.hasOwn(limits, OPERATORS_LIMIT))
    yield* unusedSetting(['limits', OPERATORS_LIMIT], true, ['operators'], features)
}

/** What the rows of the route table refer to. */
interface References {
  readonly names: readonly string[]
  /** Those without mistakes. */
  readonly limits: ReadonlyMap<string, NamedLimit>
  /** Null if they have mistakes. */
  readonly relations: PolicyRelations | null | undefined
  /** Null if they have mistakes. */
  readonly origins: PolicyOrigins | null | undefined
}

/** Yields the mistakes of the row `index` below others. */
export function* mistakesInRow(
  index: number,
  route: RouteDefinition,
  rowsAbove: PathIndex<RouteDefinition>,
  references: References,
): Generator<Mistake> {
  const { method, host, path } = route
  for (const mistake of mistakesOfRoute(route, rowsAbove, references))
    yield {
      ...mistake,
      path: ['routes', index, ...mistake.path],
      route: { method, path, ...(host !== undefined && { host }) },
    }
}

/** Yields the mistakes of a row below others, with paths relative to the row. */
export function* mistakesOfRoute(
  route: RouteDefinition,
  rowsAbove: PathIndex<RouteDefinition>,
  { names, limits, relations, origins }: References,
): Generator<Mistake> {
  // The first row that matches a request applies.
  const above = rowsAbove
    .similarTo(route)
    .find(([, { host, path }]) => coversHost(host, route.host) && shadows(path, route.path))
  const at = (code: MistakeCode, field: string, message: string) =>
    mistakeAt(code, field.split('.'), message)
  if (above !== undefined)
    yield at(
      'unreachable_route',
      'path',
      `is unreachable, because ${pathOfRoute(above[1])} above it matches the same requests`,
    )
  yield* mistakesInOrigin(route, origins)
  yield* route.credentials?.conflictsWith(route) ?? []
  if (/^\/-(\/|$)/.test(route.path))
    yield at('reserved_path', 'path', 'paths below /-/ are reserved for the gateway')
  if (/^\/oauth\/(token|revoke|introspect)$/.test(route.path))
    yield at('reserved_path', 'path', 'this path is reserved for the gateway')
  for (const limit of route.limits ?? []) {
    const by = limitsNamed(limits, limit)[0]?.by
    if (!names.includes(limit)) yield unknownLimit(['limits'], limit, names)
    else if (route.anonymous && by !== 'address' && typeof by === 'string')
      yield at('conflict', 'limits', `anonymous callers have no ${by} to limit ${limit} by`)
  }
  for (const limit of route.cors?.limits ?? [])
    if (!names.includes(limit)) yield withPath(unknownLimit(['cors', 'limits'], limit, names))
  if (route.method === 'GET' && route.input?.body !== undefined)
    yield at('conflict', 'input.body', 'input.body is not possible, because a GET has no body')
  if (route.coalesce) {
    if (route.method !== 'GET') yield at('conflict', 'coalesce', 'coalesce requires GET')
    for (const field of ['webSocketOrigins', 'forwardAuthorization'] as const)
      if (route[field])
        yield at('conflict', 'coalesce', `coalesce cannot be combined with ${field}`)
  }
  if (Array.isArray(route.forwardAuthorization) && !route.anonymous)
    for (const scheme of unverifiedSchemes(route.forwardAuthorization))
      yield withPath(
        mistakeAt(
          'missing',
          ['forwardAuthorization'],
          `${scheme} requires anonymous: true, because only the origin verifies it`,
        ),
      )
  if (route.method !== 'POST' && route.inspect?.jsonRpc !== undefined)
    yield at('conflict', 'inspect.jsonRpc', 'inspect.jsonRpc requires POST')
  if (route.anonymous && permissionsIn(route.inspect?.jsonRpc).length > 0)
    yield at(
      'conflict',
      'inspect.jsonRpc',
      'inspect.jsonRpc requires a permission, and anonymous callers have none',
    )
  yield* mistakesInAuthentication(route)
  yield* route.mcp?.mistakesIn(route, { names, relations }) ?? []
  for (const mistake of mistakesInRelation(route, relations))
    yield mistakeWithin(['relation'], 'relation', mistake)
  yield* mistakesInParams(route)
  for (const [part, schema] of Object.entries(route.input ?? {}))
    if (part !== 'headers' && dropsUnknownKeys(schema))
      yield at(
        'dropped_keys',
        `input.${part}`,
        `input.${part} drops unknown keys, which would still reach the origin; ` +
          'use z.strictObject, or z.looseObject to allow them',
      )
}

/** Yields the names in a schema of the parameters that the path does not have: no request would match, or no value. */
function* mistakesInParams({ path, input }: RouteDefinition): Generator<Mistake> {
  const { shape = {} } = (input?.params?._zod.def ?? {}) as { readonly shape?: object }
  const known = parametersOf(path)
  for (const given of Object.keys(shape))
    if (!known.includes(given))
      yield mistakeAt(
        'unknown_parameter',
        ['input', 'params', given],
        `input.params: the path has no parameter :${given}`,
        { given, known },
      )
}

/** Creates the mistake for the name of a limit that the policy does not have. */
export const unknownLimit = (
  path: Mistake['path'],
  given: string,
  known: readonly string[],
): Mistake => ({ code: 'unknown_limit', path, message: `unknown limit ${given}`, given, known })

function* mistakesInRelation(
  { relation, anonymous, path }: RouteDefinition,
  relations: References['relations'],
): Generator<Mistake> {
  if (relation === undefined || relations === null) return
  const conflict = (message: string): Mistake => ({ code: 'conflict', path: [], message })
  if (anonymous)
    yield conflict('cannot be combined with anonymous, because anonymous callers have no relations')
  if (relations === undefined)
    yield { code: 'missing_feature', path: [], message: requiresField('relations') }
  else yield* relations.mistakesIn(relation, parametersOf(path))
  const authority = relations?.authority
  const isAuthzen = typeof authority === 'object' && authority.feature === 'authzen'
  if (isAuthzen && (relation.contextualTuples?.length ?? 0) > 0)
    yield conflict('contextualTuples are not supported by AuthZEN')
}

function* mistakesInOrigin(
  route: RouteDefinition,
  origins: References['origins'],
): Generator<Mistake> {
  if (origins === null) return
  if (origins !== undefined) yield* origins.mistakesIn(route)
  else
    for (const field in originRouting)
      if (field in route)
        yield withPath(mistakeAt('missing_feature', [field], requiresField('origins')))
}

const requiresField = (field: string) =>
  `requires the field ${field} of the policy; import { ${field} } from 'portcullis/${field}'`
