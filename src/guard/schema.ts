/** Schema of the options of `portcullis()`. */
import * as z from 'zod/mini'
import { abuseSchema } from '../validators/abuse.ts'
import { superRefine } from '../validators/checks.ts'
import { parseConfiguration } from '../validators/configuration.ts'
import { callOf } from '../validators/introspection.ts'
import { issuers } from '../validators/issuer.ts'
import { limitsSchema } from '../validators/limit.ts'
import { rolesSchema } from '../validators/names.ts'
import {
  maxBodyBytesSchema,
  maxConcurrentRequestsSchema,
  maxTokenBytesSchema,
  recheckSecondsSchema,
  revocationSchema,
  tokenCacheBytesSchema,
} from '../validators/protection.ts'
import { wholeNumber } from '../validators/schema-parts.ts'
import { httpUrl, keyPrefix, MAX_TIMEOUT_MS, MIN_TIMEOUT_MS } from '../validators/variables.ts'

/** For messages. */
export const OPTIONS = 'The options of portcullis()'

const required = { error: 'is missing' }

const hasMethod = (value: unknown, name: string): boolean =>
  typeof (value as Readonly<Record<string, unknown>> | null | undefined)?.[name] === 'function'

/** The message for a value that is no object. Unknown names keep their own message. */
const whole = (message: string) => ({
  error: ({ code }: { readonly code: string }) => (code === 'invalid_type' ? message : undefined),
})

const redisServer = z.strictObject(
  {
    url: z.pipe(z.string(required), httpUrl),
    token: z.string(required).check(z.minLength(1, 'must not be empty')),
    keyPrefix: z.optional(keyPrefix),
    timeoutMs: z.optional(wholeNumber(MIN_TIMEOUT_MS, MAX_TIMEOUT_MS)),
  },
  whole('must be { url, token }, a client with a method send, or memoryStore()'),
)

const ONLY_IN_GATEWAYS = 'introspection and userinfo need a gateway; remove them'

/** The schema of issuers also fills in the defaults. */
const guardOptions = z.strictObject(
  {
    issuers: z.pipe(
      z.array(z.unknown(), 'must be a list of issuers').check(z.minLength(1, 'must not be empty')),
      issuers.check(
        superRefine((configs, context) => {
          for (const [index, config] of configs.entries()) {
            if (callOf(config) === undefined) continue
            context.addIssue({ code: 'custom', path: [index], message: ONLY_IN_GATEWAYS })
          }
        }),
      ),
    ),
    redis: redisServer,
    roles: z.optional(rolesSchema),
    limits: z.optional(limitsSchema),
    abuse: z.optional(abuseSchema),
    revocation: z.optional(revocationSchema),
    recheckSeconds: z.optional(recheckSecondsSchema),
    recheckGraceSeconds: z.optional(recheckSecondsSchema),
    lateRoutes: z.optional(z.boolean()),
    maxBodyBytes: z.optional(maxBodyBytesSchema),
    maxConcurrentRequests: z.optional(maxConcurrentRequestsSchema),
    maxTokenBytes: z.optional(maxTokenBytesSchema),
    tokenCacheBytes: z.optional(tokenCacheBytesSchema),
    audit: z.optional(
      z.custom<object>(
        (value) => hasMethod(value, 'record'),
        'must be an audit sink, such as consoleAuditSink()',
      ),
    ),
    clientAddress: z.optional(
      z.custom<object>(
        (value) => typeof value === 'function',
        'must be a function of the context that returns an address',
      ),
    ),
  },
  whole('must be an object'),
)

const withClient = z.extend(guardOptions, { redis: z.unknown() })

/** Reports whether `redis` is a client, not the address of a server. */
export const isRedisClient = (redis: unknown): boolean => hasMethod(redis, 'send')

/** Reports whether `redis` is the memory of a test. */
export const isInMemory = (redis: unknown): boolean =>
  hasMethod(redis, 'now') && typeof (redis as { readonly stores?: unknown }).stores === 'object'

/**
 * Checks the options of `portcullis()`, and returns the issuers with their defaults. Throws one
 * `Misconfigured` with all mistakes and their paths.
 */
export function checkedIssuers(options: unknown): z.output<typeof issuers> {
  const { redis } = (options ?? {}) as { readonly redis?: unknown }
  const schema = isRedisClient(redis) || isInMemory(redis) ? withClient : guardOptions
  return parseConfiguration(OPTIONS, schema, options).issuers
}
