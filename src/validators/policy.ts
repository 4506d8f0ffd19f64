/** Schema of the policy that a user writes. */
import { isPathPattern } from '../http/path-pattern.ts'
import { ORIGIN_SPELLINGS } from '../http/path-reading.ts'
import { abuseSchema } from './abuse.ts'
import { accessTokenSeconds } from './access-token.ts'
import { featureSchema, listedFeature } from './feature.ts'
import { inspectSchema } from './inspect.ts'
import { leaseMistake, leaseSchema } from './lease.ts'
import { modeSchema } from './mode.ts'
import { PERMISSION } from './names.ts'
import { relationDemandSchema } from './relations.ts'
import { keptHeader, strippedHeader } from './request-header.ts'
import { nonEmpty, wholeNumber, withShorthand } from './schema-parts.ts'
import { zodSchema } from './strictness.ts'
import * as z from './zod.ts'

/** Methods that a route may have. HEAD follows GET (RFC 9110 section 9.3.2). */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type Method = (typeof METHODS)[number]

const PERMISSION_PATTERN = /^(\*|[a-z0-9_-]+(:[a-z0-9_-]+)*:([a-z0-9_-]+|\*))$/i
/** Stricter than the sf-string of `RateLimit` headers. */
export const LIMIT_NAME = /^[a-z][a-z0-9_-]{0,63}$/i

const origin = z.url({ protocol: /^https?$/ }).check(
  z.refine((value) => new URL(value).origin === value, {
    error: 'must be an origin such as https://app.example',
  }),
)

/** A name, or an object with one. Not a union, because its errors would not name the field. */
const permissionSchema = z.pipe(
  z.transform((value) => (typeof value === 'string' ? { name: value } : value)),
  z.strictObject({
    name: z.string().check(z.regex(PERMISSION, 'must be a permission such as orders:read')),
    mode: z.optional(modeSchema),
  }),
)

const window = { limit: wholeNumber(1, 1_000_000_000), windowSeconds: wholeNumber(1, 86_400) }

const limitSchema = z
  .strictObject({
    ...window,
    by: z.union([
      z.enum(['subject', 'client', 'tenant', 'address']),
      z.custom<(...of: never) => string>(
        (value) => typeof value === 'function',
        'must be subject, client, tenant, address or a function',
      ),
    ]),
    onUnavailable: z.enum(['deny', 'allow'], { error: "must be 'deny' or 'allow'" }),
    mode: z.optional(modeSchema),
    engine: z.optional(withShorthand('exact', undefined, z.optional(featureSchema('upstash')))),
    cost: z.optional(z.int().check(z.minimum(1))),
    lease: z.optional(leaseSchema),
  })
  .check(
    z.refine(({ cost = 1, limit }) => cost <= limit, { error: 'cost must not exceed the limit' }),
    z.refine(({ cost = 1, engine }) => cost === 1 || engine === undefined, {
      error: 'a cost other than 1 requires exact windows; remove engine',
    }),
    z.superRefine((limit, context) => {
      const mistake = leaseMistake(limit)
      if (mistake !== undefined)
        context.addIssue({ code: 'custom', path: ['lease'], message: mistake })
    }),
  )

const routeSchema = z
  .strictObject({
    method: z.enum(METHODS),
    path: z
      .string()
      .check(z.refine(isPathPattern, 'must be a path pattern such as /orders/:id or /files/*')),
    originSpelling: z.optional(z.enum(ORIGIN_SPELLINGS)),
    permission: z.optional(permissionSchema),
    relation: z.optional(relationDemandSchema),
    anonymous: z.optional(z.literal(true)),
    limits: z.optional(z.array(z.string())),
    input: z.optional(
      z.partial(
        z.strictObject({
          params: zodSchema,
          query: zodSchema,
          headers: zodSchema,
          body: zodSchema,
        }),
      ),
    ),
    inspect: z.optional(inspectSchema),
    maxBodyBytes: z.optional(wholeNumber(0, 104_857_600)),
    originTimeoutMs: z.optional(wholeNumber(1, 600_000)),
    forwardAuthorization: z.optional(z.boolean()),
    forwardCookies: z.optional(z.boolean()),
    webSocketOrigins: z.optional(z.array(origin)),
    dpop: z.optional(z.boolean()),
    coalesce: z.optional(z.boolean()),
  })
  .check(
    z.refine((route) => (route.permission === undefined) === (route.anonymous === true), {
      error: 'requires exactly one of permission and anonymous',
    }),
    z.refine((route) => !(route.dpop && route.anonymous), {
      error: 'dpop cannot be combined with anonymous, because anonymous callers have no token',
    }),
  )

/** A longer time would make revocations ineffective. */
const MAX_STALENESS_MS = 60_000
const exchangeLimit = z.strictObject(window)

/** The shape of a policy file. Does NOT check references between its parts: `definePolicy` does. */
export const policySchema = z.strictObject({
  roles: z.record(
    z.string().check(z.regex(LIMIT_NAME)),
    z.array(
      z
        .string()
        .check(
          z.regex(PERMISSION_PATTERN, 'must be a permission pattern: orders:read, orders:* or *'),
        ),
    ),
  ),
  limits: z.record(z.string().check(z.regex(LIMIT_NAME)), limitSchema),
  routes: z.array(routeSchema).check(z.minLength(1)),
  tokens: z.optional(
    z.partial(
      z.strictObject({
        accessTokenSeconds,
        sessionSeconds: wholeNumber(60, 31_536_000),
        exchangeLimits: z.partial(
          z.strictObject({ client: exchangeLimit, subjectToken: exchangeLimit }),
        ),
        refreshGraceSeconds: wholeNumber(0, 60),
        dpopNonceRequired: z.boolean(),
      }),
    ),
  ),
  abuse: z.optional(abuseSchema),
  revocation: z.optional(
    z.partial(z.strictObject({ maxStalenessMs: wholeNumber(0, MAX_STALENESS_MS) })),
  ),
  relations: z.optional(featureSchema('relations')),
  tenantIssuers: z.optional(z.array(nonEmpty)),
  stripHeaders: z.optional(z.array(strippedHeader)),
  keepHeaders: z.optional(z.array(keptHeader)),
  features: z.optional(z.array(listedFeature)),
  maxConcurrentRequests: z.optional(wholeNumber(1, 1_000_000)),
})
