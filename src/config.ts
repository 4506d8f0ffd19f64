/** The gateway's environment: one zod schema, parsed once per isolate, every mistake named. */
import type { JSONWebKeySet } from 'jose'
import * as z from 'zod'
import { Misconfigured } from './errors.ts'

/** Signature algorithms of a token issuer, unless it names its own (RFC 8725 section 3.1). */
export const DEFAULT_ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const
/** RFC 9068 section 2.1. */
export const DEFAULT_TOKEN_TYPE = 'at+jwt'
export const DEFAULT_CLOCK_TOLERANCE_SECONDS = 5
/** More than this is no skew any more, but tokens that never die. */
export const MAX_CLOCK_TOLERANCE_SECONDS = 300
/** No access token should live longer than a day, whatever its issuer thinks. */
export const DEFAULT_MAX_TOKEN_AGE_SECONDS = 86_400

// biome-ignore format: a table
const ALGORITHMS = [
  'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512',
  'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'HS256',
] as const
export type Algorithm = (typeof ALGORITHMS)[number]

const jwks = z.custom<JSONWebKeySet>(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    Array.isArray((value as { keys?: unknown }).keys) &&
    (value as { keys: unknown[] }).keys.length > 0,
  'a JWK Set with at least one key (RFC 7517 section 5)',
)

const httpUrl = z.url({ protocol: /^https?$/ })

const issuerSchema = z
  .strictObject({
    issuer: z.string().min(1).max(2048),
    audience: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]),
    jwksUri: httpUrl.optional(),
    jwks: jwks.optional(),
    algorithms: z
      .array(z.enum(ALGORITHMS))
      .min(1)
      .default([...DEFAULT_ALGORITHMS]),
    typ: z.string().min(1).default(DEFAULT_TOKEN_TYPE),
    clockTolerance: z
      .number()
      .min(0)
      .max(MAX_CLOCK_TOLERANCE_SECONDS)
      .default(DEFAULT_CLOCK_TOLERANCE_SECONDS),
    maxTokenAge: z.number().positive().default(DEFAULT_MAX_TOKEN_AGE_SECONDS),
    rolesClaim: z.string().min(1).default('roles'),
    tenantClaim: z.string().min(1).default('tenant'),
  })
  .refine((issuer) => (issuer.jwksUri === undefined) !== (issuer.jwks === undefined), {
    error: 'needs exactly one of jwksUri and jwks',
  })

/** One trusted issuer of access tokens. Times are in seconds. */
export type IssuerConfig = z.infer<typeof issuerSchema>

export interface Config {
  readonly redis: { readonly url: string; readonly token: string }
  /** Undefined when the origin is the service binding `ORIGIN`. */
  readonly originUrl: string | undefined
  /** Where clients find this gateway: its issuer identifier and audience; no trailing slash. */
  readonly publicUrl: string
  /** Trusted issuers: those of `ISSUERS`, and the gateway itself where it has signing keys. */
  readonly issuers: readonly IssuerConfig[]
  /** Private keys; the first signs. Undefined: nothing is signed, no assertion is sent. */
  readonly signingKeys: JSONWebKeySet | undefined
}

const json = z.string().transform((text, context) => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    context.addIssue('is not JSON')
    return z.NEVER
  }
})

const environmentSchema = z.object({
  UPSTASH_REDIS_REST_URL: httpUrl,
  UPSTASH_REDIS_REST_TOKEN: z.string().min(16, 'is too short to be a secret'),
  ORIGIN_URL: httpUrl.optional(),
  ORIGIN: z.custom<Fetcher>((value) => typeof value === 'object' && value !== null).optional(),
  PUBLIC_URL: httpUrl.transform((url) => url.replace(/\/+$/, '')),
  ISSUERS: json.pipe(z.array(issuerSchema)).optional(),
  SIGNING_KEYS: json.pipe(jwks).optional(),
})

/**
 * Reads a Worker's environment. Throws one {@link Misconfigured} that names every bad variable;
 * values never stand in it, for some of them are secrets.
 */
export function parseConfig(env: unknown): Config {
  const parsed = environmentSchema.safeParse(env)
  if (!parsed.success) {
    throw new Misconfigured(
      'The environment',
      parsed.error.issues.map((issue) => `${z.core.toDotPath(issue.path)}: ${issue.message}`),
    )
  }
  const { data } = parsed
  return {
    redis: { url: data.UPSTASH_REDIS_REST_URL, token: data.UPSTASH_REDIS_REST_TOKEN },
    originUrl: data.ORIGIN_URL,
    publicUrl: data.PUBLIC_URL,
    issuers: data.ISSUERS ?? [],
    signingKeys: data.SIGNING_KEYS,
  }
}
