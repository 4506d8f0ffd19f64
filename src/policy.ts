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
import { mistakesInLeases, mistakesInTable } from './policy-mistakes.ts'
import { type PolicyRelations, policyRelationsOf } from './policy-relations.ts'
import { type RelationRule, ruleOf } from './relations/rule.ts'
import type { Mode } from './validators/mode.ts'
import { type Method, policySchema } from './validators/policy.ts'

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
  /** The relation that is demanded besides. */
  readonly relation?: RelationRule | undefined
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
  /** Undefined: there are none. */
  readonly relations: PolicyRelations | undefined
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
  const compiled = policyRelationsOf(definition.relations)
  if ('mistakes' in compiled) throw new Misconfigured('The policy', compiled.mistakes)
  const { relations } = compiled
  const mistakes = [
    ...mistakesInTable(definition.routes, limits, relations),
    ...mistakesInLeases(limits, revocation),
  ]
  if (mistakes.length > 0) throw new Misconfigured('The policy', mistakes)
  return {
    roles: new Map<string, readonly string[]>(Object.entries(definition.roles)),
    routes: definition.routes.map((route) => complete(route, limits, relations)),
    limits: new Map([...limits].map(([name, limit]) => [name, { name, ...limit }])),
    tokens: { ...DEFAULT_TOKENS, ...definition.tokens },
    abuse: abuseOf(definition.abuse),
    revocation,
    relations,
    maxConcurrentRequests: definition.maxConcurrentRequests ?? DEFAULT_MAX_CONCURRENT_REQUESTS,
  }
}

/** Throws `Misconfigured` for what is no policy: the types of a policy file may not have been looked at. */
export function requirePolicy(policy: Partial<Policy> | undefined): void {
  if (policy?.roles instanceof Map && policy.tokens !== undefined) return
  throw new Misconfigured('The policy', ['must be the default export, made by definePolicy()'])
}

function complete(
  route: RouteDefinition,
  limits: ReadonlyMap<string, LimitDefinition>,
  relations: PolicyRelations | undefined,
): PolicyRoute {
  const { permission, relation } = route
  const demand: PermissionDemand | undefined =
    typeof permission === 'string' ? { name: permission } : permission
  return {
    method: route.method,
    path: route.path,
    permission: demand?.name,
    permissionMode: demand?.mode,
    relation: relations && relation && ruleOf(relation, relations.subject),
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
