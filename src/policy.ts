/** The policy a user writes (`portcullis.config.ts`): roles, limits, and the table of routes. */
import * as z from 'zod'
import type { LimitRule, OnUnavailable } from './admission/limit.ts'
import { Misconfigured } from './errors.ts'
import type { Principal } from './tokens/principal.ts'
import { dropsUnknownKeys } from './validators/strictness.ts'

/** Methods that a route may have. HEAD follows GET (RFC 9110 section 9.3.2). */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type Method = (typeof METHODS)[number]

/** What a limit's own key function may look at. */
export interface LimitSubject {
  readonly request: Request
  readonly principal: Principal | null
  /** The client's normalised address; IPv6 as its /64. */
  readonly address: string
}

/** Whose window is counted. A function returns any string; it is escaped or hashed before use. */
export type LimitBy = 'subject' | 'client' | 'tenant' | 'address' | ((of: LimitSubject) => string)

/** A limit as the policy states it. */
export interface LimitDefinition {
  /** Requests per window. */
  readonly limit: number
  readonly windowSeconds: number
  readonly by: LimitBy
  readonly onUnavailable: OnUnavailable
}

/** zod schemas of a route's input. Objects refuse unknown keys unless they say otherwise. */
export interface InputSchemas {
  readonly params?: z.ZodType
  readonly query?: z.ZodType
  readonly headers?: z.ZodType
  /** The body must then be `application/json`. */
  readonly body?: z.ZodType
}

/** One row of the route table. Exactly one of `permission` and `anonymous` must be given. */
export interface RouteDefinition<LimitName extends string = string> {
  readonly method: Method
  /** Hono pattern: `/orders/:id`, or `/files/*` for everything below. */
  readonly path: string
  /** `<thing>:<verb>`, demanded of roles and scopes. */
  readonly permission?: string
  /** Anyone may call; a token that is presented must be good all the same. */
  readonly anonymous?: true
  readonly limits?: readonly LimitName[]
  readonly input?: InputSchemas
  /** Largest request body, bytes. Default 1 MiB; 0 forbids a body. */
  readonly maxBodyBytes?: number
  /** How long the origin may take to send its headers, milliseconds. Default 15,000. */
  readonly originTimeoutMs?: number
  /** Forwards the caller's `Authorization` to the origin. Default false. */
  readonly forwardAuthorization?: boolean
  /** Forwards the caller's `Cookie` to the origin. Default false. */
  readonly forwardCookies?: boolean
  /** Origins (`https://app.test`) whose pages may open a WebSocket here. Default none. */
  readonly webSocketOrigins?: readonly string[]
}

export interface PolicyDefinition<RoleName extends string, LimitName extends string> {
  /** Permissions of each role: `orders:read`, `orders:*` or `*`. */
  readonly roles: Readonly<Record<RoleName, readonly string[]>>
  readonly limits: Readonly<Record<LimitName, LimitDefinition>>
  readonly routes: readonly RouteDefinition<NoInfer<LimitName>>[]
}

/** A limit with its name: what `admit` works with. */
export interface PolicyLimit extends LimitRule {
  readonly by: LimitBy
}

/** A checked row of the table, defaults filled in. */
export interface PolicyRoute {
  readonly method: Method
  readonly path: string
  readonly permission: string | undefined
  readonly limits: readonly PolicyLimit[]
  readonly input: InputSchemas
  readonly maxBodyBytes: number
  readonly originTimeoutMs: number
  readonly forwardAuthorization: boolean
  readonly forwardCookies: boolean
  readonly webSocketOrigins: readonly string[]
}

export interface Policy {
  /** A Map, so that a role called `constructor` finds nothing. */
  readonly roles: ReadonlyMap<string, readonly string[]>
  readonly routes: readonly PolicyRoute[]
}

export const DEFAULT_MAX_BODY_BYTES = 1_048_576
export const DEFAULT_ORIGIN_TIMEOUT_MS = 15_000

const PERMISSION = /^[a-z0-9_-]+(:[a-z0-9_-]+)+$/i
const PERMISSION_PATTERN = /^(\*|[a-z0-9_-]+(:[a-z0-9_-]+)*:([a-z0-9_-]+|\*))$/i
/** The sf-string of `RateLimit` headers allows more; a policy name needs no more. */
const NAME = /^[a-z][a-z0-9_-]{0,63}$/i

const zodSchema = z.custom<z.ZodType>((value) => value instanceof z.core.$ZodType, 'a zod schema')
const origin = z.url({ protocol: /^https?$/ }).refine((value) => new URL(value).origin === value, {
  error: 'an origin, such as https://app.example',
})

const routeSchema = z
  .strictObject({
    method: z.enum(METHODS),
    path: z.string().regex(/^\/(?!\/)[^?#\s]*$/, 'a path pattern that begins with one slash'),
    permission: z.string().regex(PERMISSION, 'a permission such as orders:read').optional(),
    anonymous: z.literal(true).optional(),
    limits: z.array(z.string()).optional(),
    input: z
      .strictObject({ params: zodSchema, query: zodSchema, headers: zodSchema, body: zodSchema })
      .partial()
      .optional(),
    maxBodyBytes: z.int().min(0).max(104_857_600).optional(),
    originTimeoutMs: z.int().min(1).max(600_000).optional(),
    forwardAuthorization: z.boolean().optional(),
    forwardCookies: z.boolean().optional(),
    webSocketOrigins: z.array(origin).optional(),
  })
  .refine((route) => (route.permission === undefined) === (route.anonymous === true), {
    error: 'needs exactly one of permission and anonymous',
  })

const policySchema = z.strictObject({
  roles: z.record(
    z.string().regex(NAME),
    z.array(z.string().regex(PERMISSION_PATTERN, 'orders:read, orders:* or *')),
  ),
  limits: z.record(
    z.string().regex(NAME),
    z.strictObject({
      limit: z.int().min(1).max(1_000_000_000),
      windowSeconds: z.int().min(1).max(86_400),
      by: z.union([
        z.enum(['subject', 'client', 'tenant', 'address']),
        z.custom<LimitBy>((value) => typeof value === 'function', 'a name or a function'),
      ]),
      onUnavailable: z.enum(['deny', 'allow'], { error: "must be 'deny' or 'allow'" }),
    }),
  ),
  routes: z.array(routeSchema).min(1),
})

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
      parsed.error.issues.map((issue) => `${z.core.toDotPath(issue.path)}: ${issue.message}`),
    )
  }
  const limits = new Map<string, LimitDefinition>(Object.entries(definition.limits))
  const mistakes = [...mistakesInTable(definition.routes, limits)]
  if (mistakes.length > 0) throw new Misconfigured('The policy', mistakes)
  return {
    roles: new Map<string, readonly string[]>(Object.entries(definition.roles)),
    routes: definition.routes.map((route) => complete(route, limits)),
  }
}

function* mistakesInTable(
  routes: readonly RouteDefinition[],
  limits: ReadonlyMap<string, LimitDefinition>,
): Generator<string> {
  const seen = new Set<string>()
  for (const route of routes) {
    const name = `${route.method} ${route.path}`
    if (seen.has(name)) yield `${name}: stands in the table twice`
    seen.add(name)
    for (const limit of route.limits ?? []) {
      const definition = limits.get(limit)
      if (definition === undefined) yield `${name}: no limit is called ${limit}`
      else if (route.anonymous && definition.by !== 'address' && typeof definition.by === 'string')
        yield `${name}: anonymous callers have no ${definition.by} to limit ${limit} by`
    }
    if (route.method === 'GET' && route.input?.body !== undefined)
      yield `${name}: a GET has no body to validate`
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
  return {
    method: route.method,
    path: route.path,
    permission: route.permission,
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
  }
}
