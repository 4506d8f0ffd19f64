/** Schema of the policy that a user writes. */
import * as z from 'zod'
// Imported by name: a property access on the namespace `z.core` would bundle all of zod.
import { $ZodType } from 'zod/v4/core'
import { isPathPattern } from '../http/path-pattern.ts'
import { ORIGIN_SPELLINGS } from '../http/path-reading.ts'
import { abuseSchema } from './abuse.ts'
import { accessTokenSeconds } from './access-token.ts'
import { type Feature, featureSchema } from './feature.ts'
import { inspectSchema } from './inspect.ts'
import { leaseMistake, leaseSchema } from './lease.ts'
import { modeSchema } from './mode.ts'
import { PERMISSION } from './names.ts'
import { relationDemandSchema } from './relations.ts'
import { keptHeader, strippedHeader } from './request-header.ts'

/** Methods that a route may have. HEAD follows GET (RFC 9110 section 9.3.2). */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type Method = (typeof METHODS)[number]

const PERMISSION_PATTERN = /^(\*|[a-z0-9_-]+(:[a-z0-9_-]+)*:([a-z0-9_-]+|\*))$/i
/** Stricter than the sf-string of `RateLimit` headers. */
export const LIMIT_NAME = /^[a-z][a-z0-9_-]{0,63}$/i

const zodSchema = z.custom<z.ZodType>((value) => value instanceof $ZodType, 'must be a zod schema')
const origin = z.url({ protocol: /^https?$/ }).refine((value) => new URL(value).origin === value, {
  error: 'must be an origin such as https://app.example',
})

/**
 * Accepts a name, or an object with one. Not a union, because its errors would not name the field.
 */
const permissionSchema = z.preprocess(
  (value) => (typeof value === 'string' ? { name: value } : value),
  z.strictObject({
    name: z.string().regex(PERMISSION, 'must be a permission such as orders:read'),
    mode: modeSchema.optional(),
  }),
)

const limitSchema = z
  .strictObject({
    limit: z.int().min(1).max(1_000_000_000),
    windowSeconds: z.int().min(1).max(86_400),
    by: z.union([
      z.enum(['subject', 'client', 'tenant', 'address']),
      z.custom<(...of: never) => string>(
        (value) => typeof value === 'function',
        'must be subject, client, tenant, address or a function',
      ),
    ]),
    onUnavailable: z.enum(['deny', 'allow'], { error: "must be 'deny' or 'allow'" }),
    mode: modeSchema.optional(),
    // Parses 'exact' as undefined. Not a union, because its errors would not name the field.
    engine: z
      .preprocess(
        (value) => (value === 'exact' ? undefined : value),
        featureSchema('upstash', 'upstash').optional(),
      )
      .optional(),
    cost: z.int().min(1).optional(),
    lease: leaseSchema.optional(),
  })
  .refine(({ cost = 1, limit }) => cost <= limit, { error: 'cost must not exceed the limit' })
  .refine(({ cost = 1, engine }) => cost === 1 || engine === undefined, {
    error: 'a cost other than 1 requires exact windows; remove engine',
  })
  .superRefine((limit, context) => {
    const mistake = leaseMistake(limit)
    if (mistake !== undefined)
      context.addIssue({ code: 'custom', path: ['lease'], message: mistake })
  })

const routeSchema = z
  .strictObject({
    method: z.enum(METHODS),
    path: z
      .string()
      .refine(isPathPattern, 'must be a path pattern such as /orders/:id or /files/*'),
    originSpelling: z.enum(ORIGIN_SPELLINGS).optional(),
    permission: permissionSchema.optional(),
    relation: relationDemandSchema.optional(),
    anonymous: z.literal(true).optional(),
    limits: z.array(z.string()).optional(),
    input: z
      .strictObject({ params: zodSchema, query: zodSchema, headers: zodSchema, body: zodSchema })
      .partial()
      .optional(),
    inspect: inspectSchema.optional(),
    maxBodyBytes: z.int().min(0).max(104_857_600).optional(),
    originTimeoutMs: z.int().min(1).max(600_000).optional(),
    forwardAuthorization: z.boolean().optional(),
    forwardCookies: z.boolean().optional(),
    webSocketOrigins: z.array(origin).optional(),
    dpop: z.boolean().optional(),
    coalesce: z.boolean().optional(),
  })
  .refine((route) => (route.permission === undefined) === (route.anonymous === true), {
    error: 'requires exactly one of permission and anonymous',
  })
  .refine((route) => !(route.dpop && route.anonymous), {
    error: 'dpop cannot be combined with anonymous, because anonymous callers have no token',
  })

/** Features of the list `features`, each exported by the module of its name. */
const LISTED = ['openapi', 'otlp'] as const
/** An opt-in feature without a field of its own. */
export type PolicyFeature = Feature<(typeof LISTED)[number]>

const listedFeature = z.custom<PolicyFeature>(
  (value) => LISTED.some((name) => name === (value as PolicyFeature | null)?.feature),
  `must be the result of ${LISTED.map((name) => `${name}() from 'portcullis/${name}'`).join(' or ')}`,
)

/** A longer time would make revocations ineffective. */
const MAX_STALENESS_MS = 60_000

const exchangeLimit = z.strictObject({
  limit: z.int().min(1).max(1_000_000_000),
  windowSeconds: z.int().min(1).max(86_400),
})

/** The shape of a policy file. Does NOT check references between its parts: `definePolicy` does. */
export const policySchema = z.strictObject({
  roles: z.record(
    z.string().regex(LIMIT_NAME),
    z.array(
      z
        .string()
        .regex(PERMISSION_PATTERN, 'must be a permission pattern: orders:read, orders:* or *'),
    ),
  ),
  limits: z.record(z.string().regex(LIMIT_NAME), limitSchema),
  routes: z.array(routeSchema).min(1),
  tokens: z
    .strictObject({
      accessTokenSeconds,
      sessionSeconds: z.int().min(60).max(31_536_000),
      exchangeLimits: z
        .strictObject({ client: exchangeLimit, subjectToken: exchangeLimit })
        .partial(),
      refreshGraceSeconds: z.int().min(0).max(60),
      dpopNonceRequired: z.boolean(),
    })
    .partial()
    .optional(),
  abuse: abuseSchema.optional(),
  revocation: z
    .strictObject({ maxStalenessMs: z.int().min(0).max(MAX_STALENESS_MS) })
    .partial()
    .optional(),
  relations: featureSchema('relations', 'relations').optional(),
  tenantIssuers: z.array(z.string().min(1)).optional(),
  stripHeaders: z.array(strippedHeader).optional(),
  keepHeaders: z.array(keptHeader).optional(),
  features: z.array(listedFeature).optional(),
  maxConcurrentRequests: z.int().min(1).max(1_000_000).optional(),
})
