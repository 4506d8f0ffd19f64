/** Schema of the policy that a user writes. */

import * as z from 'zod/mini'
import { isPathPattern } from '../http/path-pattern.ts'
import { ORIGIN_SPELLINGS } from '../http/path-reading.ts'
import type { OriginRouting } from '../origin/definition.ts'
import { abuseSchema } from './abuse.ts'
import { accessTokenSeconds } from './access-token.ts'
import { authenticationSchema } from './authentication.ts'
import { credentialsSchema } from './credentials.ts'
import { featureSchema, listedFeature } from './feature.ts'
import { identityHeadersSchema } from './identity-headers.ts'
import { inspectSchema } from './inspect.ts'
import { publicIssuers } from './issuer.ts'
import { limitsSchema, limitWindow } from './limit.ts'
import { modeSchema } from './mode.ts'
import { PERMISSION, rolesSchema } from './names.ts'
import {
  maxBodyBytesSchema,
  maxConcurrentRequestsSchema,
  maxHeaderBytesSchema,
  maxTokenBytesSchema,
  recheckSecondsSchema,
  revocationSchema,
  tokenCacheBytesSchema,
} from './protection.ts'
import { relationDemandSchema } from './relations.ts'
import { keptHeader, strippedHeader } from './request-header.ts'
import { nonEmpty, partial, wholeNumber } from './schema-parts.ts'
import { zodSchema } from './strictness.ts'
import { tokenSources } from './token-source.ts'
import { httpUrl, webOrigin } from './variables.ts'

/** Methods that a route may have. HEAD follows GET (RFC 9110 section 9.3.2). */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type Method = (typeof METHODS)[number]

/** Schemes of `Authorization` (RFC 9110 section 11.1). */
const authorizationSchemes = z.array(z.string().check(z.regex(/^[!#$%&'*+.^_`|~\w-]+$/))).check(
  z.minLength(1),
  z.refine((names) => new Set(names.map((name) => name.toLowerCase())).size === names.length),
)

/** A name, or an object with one. Not a union, because its errors would not name the field. */
const permissionSchema = z.pipe(
  z.transform((value) => (typeof value === 'string' ? { name: value } : value)),
  z.strictObject({
    name: z.string().check(z.regex(PERMISSION, 'must be a permission such as orders:read')),
    mode: z.optional(modeSchema),
  }),
)

/** `origins()` or `signIn()` checks it. */
const unchecked = z.optional(z.unknown())

/** The fields of `OriginRouting`. */
export const originRouting = {
  origin: unchecked,
  host: unchecked,
  stripPrefix: unchecked,
  rewrite: unchecked,
  requestHeaders: unchecked,
  responseHeaders: unchecked,
  audience: unchecked,
} as const satisfies Record<keyof OriginRouting, unknown>

const routeSchema = z
  .strictObject({
    ...originRouting,
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
      partial({
        params: zodSchema,
        query: zodSchema,
        headers: zodSchema,
        body: zodSchema,
      }),
    ),
    cors: z.optional(featureSchema('cors')),
    inspect: z.optional(inspectSchema),
    mcp: z.optional(featureSchema('mcp')),
    maxBodyBytes: z.optional(maxBodyBytesSchema),
    originTimeoutMs: z.optional(wholeNumber(1, 600_000)),
    forwardAuthorization: z.optional(
      z.union([z.boolean(), authorizationSchemes], {
        error: 'must be true, false, or a list of schemes such as ["Basic"], each once',
      }),
    ),
    forwardCookies: z.optional(z.boolean()),
    credentials: z.optional(credentialsSchema),
    webSocketOrigins: z.optional(z.array(webOrigin)),
    session: unchecked,
    authentication: z.optional(authenticationSchema),
    dpop: z.optional(z.boolean()),
    coalesce: z.optional(z.boolean()),
    recheckSeconds: z.optional(recheckSecondsSchema),
    recheckGraceSeconds: z.optional(recheckSecondsSchema),
    finishDownloads: z.optional(z.boolean()),
  })
  .check(
    z.refine((route) => (route.permission === undefined) === (route.anonymous === true), {
      error: 'requires exactly one of permission and anonymous',
    }),
    z.refine((route) => !(route.dpop && route.anonymous), {
      error: 'dpop cannot be combined with anonymous, because anonymous callers have no token',
    }),
  )

const exchangeLimit = z.strictObject(limitWindow)

/** The shape of a policy file. Does NOT check references between its parts: `definePolicy` does. */
export const policySchema = z.strictObject({
  roles: rolesSchema,
  limits: limitsSchema,
  routes: z.array(routeSchema).check(z.minLength(1)),
  tokens: z.optional(
    partial({
      accessTokenSeconds,
      sessionSeconds: wholeNumber(60, 31_536_000),
      exchangeLimits: partial({ client: exchangeLimit, subjectToken: exchangeLimit }),
      refreshGraceSeconds: wholeNumber(0, 60),
      dpopNonceRequired: z.boolean(),
      sources: tokenSources,
    }),
  ),
  abuse: z.optional(abuseSchema),
  revocation: z.optional(revocationSchema),
  relations: z.optional(featureSchema('relations')),
  origins: z.optional(featureSchema('origins')),
  issuers: z.optional(publicIssuers),
  tenantIssuers: z.optional(z.array(nonEmpty)),
  stripHeaders: z.optional(z.array(strippedHeader)),
  keepHeaders: z.optional(z.array(keptHeader)),
  identityHeaders: z.optional(identityHeadersSchema),
  features: z.optional(z.array(listedFeature)),
  problemBaseUrl: z.optional(
    httpUrl.check(z.refine((url) => !/[?#]/.test(url), 'must have no query or fragment')),
  ),
  maxHeaderBytes: z.optional(maxHeaderBytesSchema),
  maxConcurrentRequests: z.optional(maxConcurrentRequestsSchema),
  maxTokenBytes: z.optional(maxTokenBytesSchema),
  tokenCacheBytes: z.optional(tokenCacheBytesSchema),
  maxOpenResponses: z.optional(maxConcurrentRequestsSchema),
  clientStallSeconds: z.optional(wholeNumber(1, 86_400)),
})
