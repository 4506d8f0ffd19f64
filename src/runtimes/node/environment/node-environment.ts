/** The environment on Node, which may name a Redis over RESP. */
import * as z from 'zod/mini'
import { superRefine } from '../../../validators/checks.ts'
import {
  type Environment,
  type EnvironmentSchema,
  environmentWith,
  type FeatureVariables,
  needs,
  redisVariables,
  requires,
} from '../../../validators/environment.ts'
import { converted } from '../../../validators/schema-parts.ts'
import { auditVariables, NO_SPOOL } from './audit-environment.ts'
import { redisNodeVariables } from './redis-environment.ts'
import { findUrlMistake } from './redis-url.ts'
import { serverVariables } from './server-environment.ts'

const redisUrl = z
  .string({
    error: 'is missing; set it, or UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN',
  })
  .check(
    superRefine<string>((url, context) => {
      const message = findUrlMistake(url)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    }),
  )

const unused = converted(
  z.optional(
    z.custom<never>(() => false, 'must not be set together with REDIS_URL; remove one of them'),
  ),
  () => '',
)

const onNode = (redis: object, features: readonly FeatureVariables[]) =>
  environmentWith(
    {
      ...redis,
      ...redisNodeVariables,
      ...serverVariables,
      ...auditVariables,
    } as unknown as typeof redisVariables,
    features,
  ).check(
    needs('PROXY_HEADER', 'TRUSTED_PROXIES'),
    needs('PROXY_TARGET_HEADERS', 'TRUSTED_PROXIES'),
    needs('PROXY_COUNTRY_HEADER', 'TRUSTED_PROXIES'),
    needs('PROXY_CITY_HEADER', 'TRUSTED_PROXIES'),
    z.refine<Environment | undefined>(
      ({ PROXY_COUNTRY_HEADER, PROXY_CITY_HEADER }: Environment = {}) =>
        PROXY_CITY_HEADER === undefined || PROXY_CITY_HEADER !== PROXY_COUNTRY_HEADER,
      { error: 'is the header of PROXY_COUNTRY_HEADER as well', path: ['PROXY_CITY_HEADER'] },
    ),
    requires(
      'PROXY_HEADER',
      'PROXY_TARGET_HEADERS has forwarded, which requires PROXY_HEADER=forwarded',
      ({ PROXY_HEADER, PROXY_TARGET_HEADERS }) =>
        !`${PROXY_TARGET_HEADERS}`.split(',').includes('forwarded') || PROXY_HEADER === 'forwarded',
    ),
    requires(
      'AUDIT_STREAM',
      'AUDIT_SPOOL requires it, or AUDIT_DATABASE',
      ({ AUDIT_DATABASE, AUDIT_STREAM, AUDIT_SPOOL = NO_SPOOL }) =>
        AUDIT_SPOOL === NO_SPOOL || (AUDIT_DATABASE ?? AUDIT_STREAM) !== undefined,
    ),
  )

const overRest = { ...redisVariables, REDIS_URL: z.optional(z.custom<string>()) }
const overResp = {
  UPSTASH_REDIS_REST_URL: unused,
  UPSTASH_REDIS_REST_TOKEN: unused,
  REDIS_URL: redisUrl,
}

/**
 * Returns the schema for either `REDIS_URL`, or a REST endpoint and its token, with the variables of
 * features. Default: none.
 */
export function nodeEnvironment(
  environment: Partial<Record<keyof typeof redisVariables, unknown>>,
  features: readonly FeatureVariables[] = [],
): EnvironmentSchema {
  const { REDIS_URL, UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN } = environment
  const isRestSet = (UPSTASH_REDIS_REST_URL ?? UPSTASH_REDIS_REST_TOKEN) !== undefined
  return onNode(REDIS_URL === undefined && isRestSet ? overRest : overResp, features)
}
