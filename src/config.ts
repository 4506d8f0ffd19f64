/** The gateway's environment: one zod schema, parsed once per isolate, every mistake named. */
import * as z from 'zod'
import { toDotPath } from 'zod/v4/core'
import { Misconfigured } from './errors.ts'
import {
  type AuditAddresses,
  auditAddresses,
  auditAddressKey,
  DEFAULT_AUDIT_ADDRESSES,
} from './validators/audit-address.ts'
import {
  type AuthoritiesConfig,
  authoritiesOf,
  authorityToken,
  authorityUrl,
  authzenContext,
  authzenUrls,
  needs,
  openfgaStores,
} from './validators/authority.ts'
import { callTimeout } from './validators/call-timeout.ts'
import { type ConfiguredClient, configuredClients } from './validators/client.ts'
import { httpUrl, type IssuerConfig, issuers } from './validators/issuer.ts'
import { json } from './validators/json-text.ts'
import { headerList, ratio } from './validators/otlp.ts'
import { ownIssuer } from './validators/own-issuer.ts'
import { type SigningJwk, signingKeys } from './validators/signing-jwk.ts'

export {
  DEFAULT_ALGORITHMS,
  DEFAULT_CLOCK_TOLERANCE_SECONDS,
  DEFAULT_MAX_TOKEN_AGE_SECONDS,
  DEFAULT_TOKEN_TYPE,
  type IssuerConfig,
  MAX_CLOCK_TOLERANCE_SECONDS,
} from './validators/issuer.ts'
export type { Algorithm } from './validators/jwk.ts'

export interface Config {
  readonly redis: RedisConfig
  /** Undefined when the origin is the service binding `ORIGIN`. */
  readonly originUrl: string | undefined
  /** Where clients find this gateway: its issuer identifier and audience; no trailing slash. */
  readonly publicUrl: string
  /**
   * Trusted issuers: those of `ISSUERS`, and the gateway itself where it has signing keys. An
   * entry of `ISSUERS` for the gateway's own URL replaces what would be derived.
   */
  readonly issuers: readonly IssuerConfig[]
  /** Private keys, each with `kid` and `alg`; see `activeKey`. Undefined: nothing is signed. */
  readonly signingKeys: { readonly keys: SigningJwk[] } | undefined
  /** OAuth clients that are there without anybody having created them. */
  readonly clients: readonly ConfiguredClient[]
  /** Who may read the metrics. */
  readonly metricsAccess: 'operators' | 'public'
  /** How much of clients' addresses the audit trail keeps. */
  readonly auditAddresses: AuditAddresses
  /** Where spans go; undefined: nowhere. */
  readonly traces: TracesConfig | undefined
  /** Those over relations that a policy may choose. */
  readonly authorities: AuthoritiesConfig
}

export interface RedisConfig {
  readonly url: string
  readonly token: string
  /** For a call on behalf of a request; undefined: `DEFAULT_REDIS_TIMEOUT_MS`. */
  readonly timeoutMs?: number | undefined
}

export interface TracesConfig {
  /** Spans are posted to it. */
  readonly url: string
  /** Sent along; may hold credentials. */
  readonly headers: Readonly<Record<string, string>>
  /** Of the traces that begin here, which share is recorded: 0 to 1. */
  readonly sampleRatio: number
}

/** But the quotation mark and the backslash. */
const VISIBLE_ASCII = /^[\x21\x23-\x5b\x5d-\x7e]+$/

const required = { error: 'is missing' }

const environmentSchema = z
  .object({
    UPSTASH_REDIS_REST_URL: z.string(required).pipe(httpUrl),
    // Whether it is a good secret is for the server to say that it opens.
    UPSTASH_REDIS_REST_TOKEN: z.string(required).min(1, 'is empty'),
    ORIGIN_URL: httpUrl.optional(),
    ORIGIN: z
      .custom<Fetcher>((value) => typeof value === 'object' && value !== null, 'is not a binding')
      .optional(),
    PUBLIC_URL: z
      .string(required)
      .pipe(httpUrl)
      // RFC 9728 section 3.1 would have the path behind `.well-known`, where nobody looks for it.
      .refine((url) => /^https?:\/\/[^/?#]+\/?$/.test(url), 'must have no path, query or fragment')
      // It stands between quotes in challenges, and is compared letter by letter as an issuer.
      .refine((url) => VISIBLE_ASCII.test(url), 'must be ASCII; write other names as xn-- or %XX')
      .transform((url) => url.replace(/\/+$/, '')),
    ISSUERS: json.pipe(issuers).optional(),
    SIGNING_KEYS: json.pipe(signingKeys).optional(),
    REDIS_TIMEOUT_MS: callTimeout.optional(),
    CLIENTS: json.pipe(configuredClients).optional(),
    METRICS_ACCESS: z.enum(['operators', 'public']).optional(),
    AUDIT_ADDRESSES: auditAddresses.optional(),
    AUDIT_ADDRESS_KEY: auditAddressKey.optional(),
    OTLP_ENDPOINT: httpUrl
      .refine((url) => !/[?#]/.test(url), 'must have no query or fragment')
      .optional(),
    OTLP_HEADERS: headerList.optional(),
    OTLP_SAMPLE_RATIO: ratio.optional(),
    OPENFGA_URL: authorityUrl.optional(),
    OPENFGA_STORES: json.pipe(openfgaStores).optional(),
    OPENFGA_TOKEN: authorityToken.optional(),
    AUTHZEN_URLS: json.pipe(authzenUrls).optional(),
    AUTHZEN_TOKEN: authorityToken.optional(),
    AUTHZEN_CONTEXT: authzenContext.optional(),
    AUTHORITY_TIMEOUT_MS: callTimeout.optional(),
  })
  .refine((env) => env?.ORIGIN !== undefined || env?.ORIGIN_URL !== undefined, {
    error: 'is missing, and so is a service binding ORIGIN',
    path: ['ORIGIN_URL'],
    // Told together with every other mistake, not after they are mended.
    when: () => true,
  })
  .refine((env) => env?.AUDIT_ADDRESSES !== 'hashed' || env.AUDIT_ADDRESS_KEY !== undefined, {
    error: 'is missing, and AUDIT_ADDRESSES is hashed',
    path: ['AUDIT_ADDRESS_KEY'],
    when: () => true,
  })
  .refine(...needs('OPENFGA_URL', 'OPENFGA_STORES'))
  .refine(...needs('OPENFGA_STORES', 'OPENFGA_URL'))
  .refine(...needs('OPENFGA_TOKEN', 'OPENFGA_URL'))
  .refine(...needs('AUTHZEN_TOKEN', 'AUTHZEN_URLS'))
  .superRefine(({ CLIENTS = [], SIGNING_KEYS }, context) => {
    // What no key can sign for would get nothing but failures.
    for (const [index, { tokenAlgorithm }] of CLIENTS.entries()) {
      if (tokenAlgorithm === undefined) continue
      if (SIGNING_KEYS?.keys.some(({ alg }) => alg === tokenAlgorithm)) continue
      const path = ['CLIENTS', index, 'tokenAlgorithm']
      context.addIssue({ code: 'custom', path, message: 'is that of no key in SIGNING_KEYS' })
    }
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
      parsed.error.issues.map((issue) => `${toDotPath(issue.path)}: ${issue.message}`),
    )
  }
  const { data } = parsed
  const keys = data.SIGNING_KEYS?.keys
  const named = data.ISSUERS ?? []
  const isNamed = named.some(({ issuer }) => issuer === data.PUBLIC_URL)
  return {
    redis: {
      url: data.UPSTASH_REDIS_REST_URL,
      token: data.UPSTASH_REDIS_REST_TOKEN,
      timeoutMs: data.REDIS_TIMEOUT_MS,
    },
    originUrl: data.ORIGIN_URL,
    publicUrl: data.PUBLIC_URL,
    issuers: keys === undefined || isNamed ? named : [...named, ownIssuer(data.PUBLIC_URL, keys)],
    signingKeys: keys === undefined ? undefined : { keys },
    clients: data.CLIENTS ?? [],
    metricsAccess: data.METRICS_ACCESS ?? 'operators',
    auditAddresses: {
      form: data.AUDIT_ADDRESSES ?? DEFAULT_AUDIT_ADDRESSES,
      key: data.AUDIT_ADDRESS_KEY ?? '',
    },
    traces:
      data.OTLP_ENDPOINT === undefined
        ? undefined
        : {
            url: `${data.OTLP_ENDPOINT.replace(/\/+$/, '')}/v1/traces`,
            headers: data.OTLP_HEADERS ?? {},
            sampleRatio: data.OTLP_SAMPLE_RATIO ?? 1,
          },
    authorities: authoritiesOf(data),
  }
}
