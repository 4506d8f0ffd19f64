/** Checks the policy that a user writes (`portcullis.config.ts`) and fills in its defaults. */
import { type Abuse, resolveAbuse } from '../access/abuse/definition.ts'
import { Misconfigured } from '../errors.ts'
import type { ClaimPath } from '../validators/claim-path.ts'
import type { ListedFeature } from '../validators/feature.ts'
import { readIdentityHeaders } from '../validators/identity-headers.ts'
import type { IssuerInput } from '../validators/issuer-input.ts'
import type { Method } from '../validators/policy.ts'
import { DEFAULT_MAX_TOKEN_BYTES, DEFAULT_TOKEN_CACHE_BYTES } from '../validators/protection.ts'
import { checkedParts } from './check-definition.ts'
import {
  DEFAULT_CLIENT_STALL_SECONDS,
  DEFAULT_MAX_CONCURRENT_REQUESTS,
  DEFAULT_MAX_OPEN_RESPONSES,
} from './defaults.ts'
import type { PolicyDefinition, RevocationDefinition } from './definition.ts'
import type { PolicyOrigins } from './origins.ts'
import type { PolicyRelations } from './relations.ts'
import type { PolicyLimit, PolicyRoute } from './route.ts'
import { type Tokens, tokensOf } from './tokens.ts'

export type { Method, PolicyLimit, PolicyRoute }

export interface Policy {
  /** A Map, so that a role name such as `constructor` does not find a property of `Object`. */
  readonly roles: ReadonlyMap<string, readonly string[]>
  readonly routes: readonly PolicyRoute[]
  /** All limits by name, including those that no route uses. */
  readonly limits: ReadonlyMap<string, PolicyLimit>
  readonly tokens: Tokens
  readonly abuse: Abuse
  readonly revocation: Required<RevocationDefinition>
  readonly relations: PolicyRelations | undefined
  /** Undefined: the environment has the only one. */
  readonly origins?: PolicyOrigins | undefined
  /** Undefined: the environment has them. */
  readonly issuers?: readonly IssuerInput[] | undefined
  readonly tenantIssuers: readonly string[] | undefined
  /** Claim paths by the lower-case name of the header. */
  readonly identityHeaders: ReadonlyMap<string, ClaimPath>
  readonly stripHeaders?: readonly string[] | undefined
  readonly keepHeaders?: readonly string[] | undefined
  readonly features: readonly ListedFeature[]
  /** Undefined: `type` of problems is a URN. */
  readonly problemBaseUrl?: string | undefined
  /** Undefined: the default of the runtime. */
  readonly maxHeaderBytes?: number | undefined
  readonly maxConcurrentRequests: number
  readonly maxTokenBytes: number
  readonly tokenCacheBytes: number
  readonly maxOpenResponses: number
  readonly clientStallSeconds: number
}

/**
 * Checks a policy and fills in its defaults. Throws one {@link Misconfigured} with all mistakes. Does
 * NOT check that the origin has the routes.
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
export function definePolicy<
  const RoleName extends string,
  const LimitName extends string,
  const OriginName extends string,
>(definition: PolicyDefinition<RoleName, LimitName, OriginName>): Policy {
  const { limits, revocation, relations, origins, routes } = checkedParts(definition)
  return {
    roles: new Map<string, readonly string[]>(Object.entries(definition.roles)),
    routes,
    limits,
    tokens: tokensOf(definition.tokens),
    abuse: resolveAbuse(definition.abuse),
    revocation,
    relations,
    origins,
    issuers: definition.issuers,
    tenantIssuers: definition.tenantIssuers ?? relations?.issuers,
    stripHeaders: definition.stripHeaders,
    keepHeaders: definition.keepHeaders,
    identityHeaders: readIdentityHeaders(definition.identityHeaders),
    features: definition.features ?? [],
    problemBaseUrl: definition.problemBaseUrl,
    maxHeaderBytes: definition.maxHeaderBytes,
    maxConcurrentRequests: definition.maxConcurrentRequests ?? DEFAULT_MAX_CONCURRENT_REQUESTS,
    maxTokenBytes: definition.maxTokenBytes ?? DEFAULT_MAX_TOKEN_BYTES,
    tokenCacheBytes: definition.tokenCacheBytes ?? DEFAULT_TOKEN_CACHE_BYTES,
    maxOpenResponses: definition.maxOpenResponses ?? DEFAULT_MAX_OPEN_RESPONSES,
    clientStallSeconds: definition.clientStallSeconds ?? DEFAULT_CLIENT_STALL_SECONDS,
  }
}

/** Throws `Misconfigured` if the value, of a file that was perhaps not type-checked, is no policy. */
export function requirePolicy(policy: Partial<Policy> | undefined): void {
  if (policy?.roles instanceof Map && policy.tokens !== undefined) return
  throw new Misconfigured('The policy', [
    'must be the default export, and created by definePolicy()',
  ])
}
