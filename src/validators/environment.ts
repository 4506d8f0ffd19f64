/**
 * The gateway's environment, parsed once per isolate. An opt-in feature has the schemas of its own
 * variables, see {@link FeatureVariables}.
 */

import * as z from 'zod/mini'
import type { Fetches } from '../origin/origin.ts'
import { superRefine } from './checks.ts'
import { parseConfiguration } from './configuration.ts'
import { callOf } from './introspection.ts'
import { issuers, needsDiscovery, ownIssuer } from './issuer.ts'
import { publicUrlOf } from './public-url.ts'
import { converted } from './schema-parts.ts'
import { signingKeys } from './signing-jwk.ts'
import {
  auditAddresses,
  auditAddressKey,
  callTimeout,
  DEFAULT_AUDIT_ADDRESSES,
  httpUrl,
  json,
  keyPrefix,
} from './variables.ts'

/** Visible ASCII except the quotation mark and the backslash. */
const VISIBLE_ASCII = /^[\x21\x23-\x5b\x5d-\x7e]+$/

const required = { error: 'is missing' }

const publicUrl = converted(
  z.pipe(z.string(required), httpUrl).check(
    // With a path, RFC 9728 section 3.1 would put that path after `.well-known`, and clients do not
    // look there.
    z.refine((url) => /^https?:\/\/[^/?#]+\/?$/i.test(url), 'must have no path, query or fragment'),
    // It appears in quotation marks in challenges.
    z.refine((url) => VISIBLE_ASCII.test(url), 'must be ASCII; write other names as xn-- or %XX'),
  ),
  publicUrlOf,
)

/** The variables, before or after they are parsed. */
export type Environment = Readonly<Record<string, unknown>>

/** Reports the missing variable `name` together with all other mistakes, not after them. */
export const requires = (name: string, reason: string, isMet: (env: Environment) => boolean) =>
  z.refine<Environment | undefined>((env) => isMet(env ?? {}), {
    error: `is missing; ${reason}`,
    path: [name],
    when: () => true,
  })

/** Reports the missing variable `needed` if `given` is set. */
export const needs = (given: string, needed: string) =>
  requires(
    needed,
    `${given} requires it`,
    (env) => env[given] === undefined || env[needed] !== undefined,
  )

/** The variables of Redis on Workers: REST only. */
export const redisVariables = {
  UPSTASH_REDIS_REST_URL: z.pipe(z.string(required), httpUrl),
  // Does NOT check the strength of the token: only the server can verify it.
  UPSTASH_REDIS_REST_TOKEN: z.string(required).check(z.minLength(1, 'must not be empty')),
  REDIS_URL: z.optional(
    z.custom<string>(() => false, 'works on Node only; set UPSTASH_REDIS_REST_URL'),
  ),
}

/** A check of the environment, as `requires` creates it. */
export type EnvironmentCheck = ReturnType<typeof requires>

/** The variables of an opt-in feature. Only a policy with the feature has them in its bundle. */
export interface FeatureVariables<Shape extends z.core.$ZodShape = z.core.$ZodShape> {
  readonly shape: Shape
  /** Checks of several variables together. They may examine all parsed variables. */
  readonly checks?: readonly EnvironmentCheck[]
}

/** Creates the schema of a runtime, from its variables of Redis and those of the policy's features. */
export const environmentWith = (
  redis: typeof redisVariables,
  features: readonly FeatureVariables[] = [],
) =>
  z
    .object({
      ...redis,
      ...(Object.assign({}, ...features.map(({ shape }) => shape)) as object),
      ORIGIN_URL: z.optional(httpUrl),
      ORIGIN: z.optional(
        z.custom<Fetches>(
          (value) => typeof value === 'object' && value !== null,
          'must be a service binding',
        ),
      ),
      PUBLIC_URL: publicUrl,
      ISSUERS: z.optional(z.pipe(json, issuers)),
      SIGNING_KEYS: z.optional(z.pipe(json, signingKeys)),
      REDIS_PREFIX: z.optional(keyPrefix),
      REDIS_TIMEOUT_MS: z.optional(callTimeout),
      METRICS_ACCESS: z.optional(z.enum(['operators', 'public'])),
      AUDIT_ADDRESSES: z.optional(auditAddresses),
      AUDIT_ADDRESS_KEY: z.optional(auditAddressKey),
    })
    .check(
      requires(
        'AUDIT_ADDRESS_KEY',
        'AUDIT_ADDRESSES=hashed requires it',
        (env) => env.AUDIT_ADDRESSES !== 'hashed' || env.AUDIT_ADDRESS_KEY !== undefined,
      ),
      superRefine(({ ISSUERS = [], PUBLIC_URL }, context) => {
        // A Worker that calls its own URL reaches the origin behind it, or itself again.
        for (const [index, entry] of ISSUERS.entries()) {
          if (URL.parse(entry.issuer)?.href !== new URL(PUBLIC_URL).href) continue
          const path = ['ISSUERS', index]
          if (needsDiscovery(entry))
            context.addIssue({ code: 'custom', path, message: 'is this gateway; requires jwks' })
          if (callOf(entry) !== undefined) {
            const message = 'is this gateway, which verifies its own opaque tokens without a call'
            context.addIssue({ code: 'custom', path, message })
          }
        }
      }),
      ...features.flatMap(({ checks = [] }) => checks),
    )

export type EnvironmentSchema = ReturnType<typeof environmentWith>

/** The variables as a user sets them, with those of every feature. */
export type EnvironmentInput = z.input<EnvironmentSchema> & {
  readonly [Name in FeatureVariable]?: string | undefined
}

type FeatureVariable =
  | 'CLIENTS'
  | 'ISSUER_CLIENTS'
  | 'SIGNAL_TRANSMITTERS'
  | `OTLP_${'ENDPOINT' | 'HEADERS' | 'SAMPLE_RATIO'}`
  | `OPENFGA_${'URL' | 'STORES' | 'TOKEN'}`
  | `AUTHZEN_${'URLS' | 'TOKEN' | 'CONTEXT'}`
  | 'AUTHORITY_TIMEOUT_MS'

/** Returns a check that always fails. */
export const failing = (name: string, error: string): EnvironmentCheck =>
  z.refine(() => false, { error, path: [name], when: () => true })

export const BOTH_HAVE_ISSUERS = 'is set, and the policy has issuers too; remove one of them'

interface WithIssuers {
  readonly issuers?: readonly object[] | undefined
}

/** Returns the variables with the issuers of the policy as `ISSUERS`. A variable that is set stays: it is a mistake. */
export const withIssuersOf = <Variables extends { readonly ISSUERS?: unknown }>(
  { issuers }: WithIssuers,
  variables: Variables,
): Variables =>
  issuers === undefined || variables.ISSUERS !== undefined
    ? variables
    : { ...variables, ISSUERS: JSON.stringify(issuers) }

/** Returns the check that the variable and the policy do not both have issuers. */
export const issuerAgreement = (
  { issuers }: WithIssuers,
  { ISSUERS }: { readonly ISSUERS?: unknown },
): FeatureVariables => ({
  shape: {},
  checks: issuers && ISSUERS !== undefined ? [failing('ISSUERS', BOTH_HAVE_ISSUERS)] : [],
})

/** The environment must name an origin. */
export const needsOrigin = requires(
  'ORIGIN_URL',
  'set it, or bind a service as ORIGIN',
  ({ ORIGIN, ORIGIN_URL }) => ORIGIN !== undefined || ORIGIN_URL !== undefined,
)

/** Reports whether a variable is the URL of an origin that a policy names. */
export const isOriginVariable = (name: string): boolean => name.startsWith('ORIGIN_URL_')

/** Reports whether a variable belongs to the gateway's own credentials at an origin. */
const isCredentialVariable = (name: string): boolean => /^ORIGIN_(?:SECRET|TOKEN_URL)_/.test(name)

/** Reports whether a policy names the variable, and not the gateway. */
export const isNamedByPolicy = (name: string): boolean =>
  isOriginVariable(name) || isCredentialVariable(name)

/** Returns the checks of origins without the policy: it names the variables that are required. */
export const originChecksFor = (names: readonly string[]): readonly EnvironmentCheck[] =>
  names.some(isOriginVariable) ? [] : [needsOrigin]

/**
 * Throws one `Misconfigured` that names every invalid variable.
 *
 * @param schema of the runtime, with the variables of features. Default: of Workers, without features
 * @param ofOrigins checks of the variables of origins. Default: there must be one origin
 */
export function parseEnvironment(
  env: unknown,
  schema: EnvironmentSchema = environmentWith(redisVariables),
  ofOrigins: readonly EnvironmentCheck[] = [needsOrigin],
) {
  const data = parseConfiguration('The environment', schema.check(...ofOrigins), env)
  const keys = data.SIGNING_KEYS?.keys
  const named = data.ISSUERS ?? []
  const isNamed = named.some(({ issuer }) => issuer === data.PUBLIC_URL)
  return {
    redis: {
      /** Of the REST endpoint; on Node also `REDIS_URL`, which may contain a password. */
      url: data.REDIS_URL ?? data.UPSTASH_REDIS_REST_URL,
      /** Of the REST endpoint. Empty with `REDIS_URL`. */
      token: data.UPSTASH_REDIS_REST_TOKEN,
      /** The beginning of all names of keys. Undefined: `DEFAULT_KEY_PREFIX`. */
      keyPrefix: data.REDIS_PREFIX,
      /** Of a call on behalf of a request. Undefined: `DEFAULT_REDIS_TIMEOUT_MS`. */
      timeoutMs: data.REDIS_TIMEOUT_MS,
    },
    /** Undefined if the origin is the service binding `ORIGIN`. */
    originUrl: data.ORIGIN_URL,
    /** The gateway's issuer identifier and audience. Without a trailing slash. */
    publicUrl: data.PUBLIC_URL,
    /** An entry of `ISSUERS` for the gateway's own URL replaces the derived one. */
    issuers: keys === undefined || isNamed ? named : [...named, ownIssuer(data.PUBLIC_URL, keys)],
    /** Undefined: the gateway signs nothing. See `activeKey`. */
    signingKeys: keys === undefined ? undefined : { keys },
    metricsAccess: data.METRICS_ACCESS ?? 'operators',
    auditAddresses: {
      form: data.AUDIT_ADDRESSES ?? DEFAULT_AUDIT_ADDRESSES,
      key: data.AUDIT_ADDRESS_KEY ?? '',
    },
    /** The parsed variables. A feature reads its own with {@link readVariables}. */
    variables: data as Environment,
  }
}

export type Config = Readonly<ReturnType<typeof parseEnvironment>>

/** Returns the values of a feature's variables. They are undefined if the schema did not have them. */
export function readVariables<Shape extends z.core.$ZodShape>(
  { variables }: Pick<Config, 'variables'>,
  _feature: FeatureVariables<Shape>,
): z.output<z.ZodMiniObject<Shape>> {
  // The schema of the environment has parsed them with this shape.
  return variables as z.output<z.ZodMiniObject<Shape>>
}
