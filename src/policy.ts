/** The policy a user writes (`portcullis.config.ts`), checked, with its defaults filled in. */
import { toDotPath } from 'zod/v4/core'
import { type Abuse, abuseOf } from './admission/abuse-definition.ts'
import type { LimitRule } from './admission/limit.ts'
import { Misconfigured } from './errors.ts'
import type { InspectDefinition } from './inspection/definition.ts'
import { DEFAULT_TOKENS, type TokensDefinition } from './oauth/tokens-definition.ts'
import type {
  InputSchemas,
  LimitBy,
  LimitDefinition,
  PermissionDemand,
  PolicyDefinition,
  RevocationDefinition,
  RouteDefinition,
} from './policy-definition.ts'
import { demandsPermission } from './validators/inspect.ts'
import type { Mode } from './validators/mode.ts'
import { shadows } from './validators/path-pattern.ts'
import { type Method, policySchema } from './validators/policy.ts'
import { dropsUnknownKeys } from './validators/strictness.ts'

export type { Method }

/** A limit with its name: what `admit` works with. */
export interface PolicyLimit extends LimitRule {
  readonly by: LimitBy
}

/** A checked row of the table, defaults filled in. */
export interface PolicyRoute {
  readonly method: Method
  readonly path: string
  readonly permission: string | undefined
  /** Whether the permission is demanded, or only watched. Undefined: demanded. */
  readonly permissionMode?: Mode | undefined
  readonly limits: readonly PolicyLimit[]
  readonly input: InputSchemas
  readonly maxBodyBytes: number
  readonly originTimeoutMs: number
  readonly forwardAuthorization: boolean
  readonly forwardCookies: boolean
  readonly webSocketOrigins: readonly string[]
  readonly dpop: boolean
  readonly coalesce: boolean
  /** Undefined where nothing is inspected. */
  readonly inspect?: InspectDefinition | undefined
}

export interface Policy {
  /** A Map, so that a role called `constructor` finds nothing. */
  readonly roles: ReadonlyMap<string, readonly string[]>
  readonly routes: readonly PolicyRoute[]
  /** Every limit by its name, also those that no route uses. */
  readonly limits: ReadonlyMap<string, PolicyLimit>
  readonly tokens: Required<TokensDefinition>
  readonly abuse: Abuse
  readonly revocation: Required<RevocationDefinition>
  readonly maxConcurrentRequests: number
}

export const DEFAULT_MAX_BODY_BYTES = 1_048_576
export const DEFAULT_ORIGIN_TIMEOUT_MS = 15_000
/** Strict: every request asks. See docs/decisions/0038. */
export const DEFAULT_REVOCATION: Required<RevocationDefinition> = { maxStalenessMs: 0 }
/** See docs/decisions/0024. */
export const DEFAULT_MAX_CONCURRENT_REQUESTS = 1_000

/**
 * Checks a policy and fills in its defaults. Every mistake is named in one {@link Misconfigured}.
 * Does not check that the origin knows the routes.
 *
 * @example
 * ```ts
 * export default definePolicy({
 *   roles: { reader: ['orders:read'] },
 *   limits: {
 *     standard: { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
 *   },
 *   routes: [
 *     { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] },
 *   ],
 * })
 * ```
 */
export function definePolicy<const RoleName extends string, const LimitName extends string>(
  definition: PolicyDefinition<RoleName, LimitName>,
): Policy {
  const parsed = policySchema.safeParse(definition)
  if (!parsed.success) {
    throw new Misconfigured(
      'The policy',
      parsed.error.issues.map((issue) => `${toDotPath(issue.path)}: ${issue.message}`),
    )
  }
  const limits = new Map<string, LimitDefinition>(Object.entries(definition.limits))
  const revocation = { ...DEFAULT_REVOCATION, ...definition.revocation }
  const mistakes = [
    ...mistakesInTable(definition.routes, limits),
    ...mistakesInLeases(limits, revocation),
  ]
  if (mistakes.length > 0) throw new Misconfigured('The policy', mistakes)
  return {
    roles: new Map<string, readonly string[]>(Object.entries(definition.roles)),
    routes: definition.routes.map((route) => complete(route, limits)),
    limits: new Map([...limits].map(([name, limit]) => [name, { name, ...limit }])),
    tokens: { ...DEFAULT_TOKENS, ...definition.tokens },
    abuse: abuseOf(definition.abuse),
    revocation,
    maxConcurrentRequests: definition.maxConcurrentRequests ?? DEFAULT_MAX_CONCURRENT_REQUESTS,
  }
}

function* mistakesInLeases(
  limits: ReadonlyMap<string, LimitDefinition>,
  { maxStalenessMs }: Required<RevocationDefinition>,
): Generator<string> {
  if (maxStalenessMs > 0) return
  for (const [name, { lease }] of limits) {
    if (lease !== undefined)
      yield `limits.${name}.lease: nobody can spend it where revocation.maxStalenessMs is 0`
  }
}

function* mistakesInTable(
  routes: readonly RouteDefinition[],
  limits: ReadonlyMap<string, LimitDefinition>,
): Generator<string> {
  for (const [index, route] of routes.entries()) {
    const name = `${route.method} ${route.path}`
    // The first row that has a request's path decides over it.
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
    for (const [part, schema] of Object.entries(route.input ?? {}))
      if (part !== 'headers' && dropsUnknownKeys(schema))
        yield `${name}: input.${part} drops unknown keys, which would still reach the origin; ` +
          'use z.strictObject, or z.looseObject to let them pass'
  }
}

function complete(
  route: RouteDefinition,
  limits: ReadonlyMap<string, LimitDefinition>,
): PolicyRoute {
  const { permission } = route
  const demand: PermissionDemand | undefined =
    typeof permission === 'string' ? { name: permission } : permission
  return {
    method: route.method,
    path: route.path,
    permission: demand?.name,
    permissionMode: demand?.mode,
    limits: (route.limits ?? []).flatMap((name) => {
      const definition = limits.get(name)
      return definition === undefined ? [] : [{ name, ...definition }]
    }),
    input: route.input ?? {},
    maxBodyBytes: route.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES,
    originTimeoutMs: route.originTimeoutMs ?? DEFAULT_ORIGIN_TIMEOUT_MS,
    forwardAuthorization: route.forwardAuthorization ?? false,
    forwardCookies: route.forwardCookies ?? false,
    webSocketOrigins: route.webSocketOrigins ?? [],
    dpop: route.dpop ?? false,
    coalesce: route.coalesce ?? false,
    inspect: route.inspect,
  }
}
