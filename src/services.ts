/** The composition root: the only place that names adapters. One set of services an isolate. */
import type { JSONWebKeySet } from 'jose'
import { type Admission, createAdmission } from './admission/admission.ts'
import { addressSink } from './audit/address-sink.ts'
import { batchingAuditSink } from './audit/batching-sink.ts'
import { consoleAuditSink } from './audit/console-sink.ts'
import type { AuditSink } from './audit/event.ts'
import { bystanderOf, createCircuitBreaker } from './breakers/breaker.ts'
import { type Breakers, createBreakers } from './breakers/registry.ts'
import { type Config, parseConfig } from './config.ts'
import { Misconfigured, Unavailable } from './errors.ts'
import { guardedOrigin } from './origin/guarded-origin.ts'
import { createOrigin, type Origin, type OriginOptions } from './origin.ts'
import type { Policy } from './policy.ts'
import type { RelationChecker } from './relations/checker.ts'
import type { AdminOptions } from './routes/admin.ts'
import type { ReadinessCheck } from './routes/health.ts'
import { type AbuseServices, abuseServices } from './services/abuse.ts'
import { adminServices } from './services/admin.ts'
import { auditQueueOf, queueTakesEvents } from './services/audit-queue.ts'
import {
  authorizationServerOf,
  type MakeAuthorizationServer,
} from './services/authorization-server.ts'
import { type MetricsServices, metricsServices } from './services/metrics.ts'
import { relationServices } from './services/relations.ts'
import { type SpanServices, spanServices } from './services/spans.ts'
import { createUpstashAdmissionStore } from './stores/upstash/admission-store.ts'
import { createRedisRest, type RedisRest } from './stores/upstash/rest.ts'
import { type AssertionSigner, createAssertionSigner } from './tokens/assertion.ts'
import { createDpopVerifier, type DpopVerifier, nonceSecretOf } from './tokens/dpop.ts'
import type { TokenVerifier } from './tokens/principal.ts'
import { createReferences, type References } from './tokens/references.ts'
import { publicKeySet, publishedKeys } from './tokens/signing-keys.ts'
import { createTokenVerifier } from './tokens/verifier.ts'

/** What a Worker gives the gateway; checked by `parseConfig`. */
export interface GatewayEnv {
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
  readonly REDIS_TIMEOUT_MS?: string
  readonly PUBLIC_URL: string
  readonly ORIGIN_URL?: string
  readonly ORIGIN?: Fetcher
  readonly ISSUERS?: string
  readonly SIGNING_KEYS?: string
  readonly CLIENTS?: string
  readonly METRICS_ACCESS?: string
  readonly OTLP_ENDPOINT?: string
  readonly OTLP_HEADERS?: string
  readonly OTLP_SAMPLE_RATIO?: string
  readonly AUDIT_ADDRESSES?: string
  readonly AUDIT_ADDRESS_KEY?: string
  readonly OPENFGA_URL?: string
  readonly OPENFGA_STORES?: string
  readonly OPENFGA_TOKEN?: string
  readonly AUTHZEN_URLS?: string
  readonly AUTHZEN_TOKEN?: string
  readonly AUTHZEN_CONTEXT?: string
  readonly AUTHORITY_TIMEOUT_MS?: string
  readonly AUDIT_QUEUE?: Queue
  readonly AUDIT_DB?: D1Database
}

/** Everything that the pipeline needs and does not make itself. */
export interface Services {
  readonly publicUrl: string
  /** Identifiers of the trusted issuers. */
  readonly issuers: readonly string[]
  /** What the gateway publishes of its signing keys at this moment. */
  readonly publicKeys: () => JSONWebKeySet
  readonly verifier: TokenVerifier
  /** Opaque tokens and API keys that this isolate knows. */
  readonly references: References
  /** Makes the verifier of proofs of possession; nonces are the policy's to demand. */
  readonly proofs: (policy: { readonly nonceRequired: boolean }) => DpopVerifier
  /** Makes the decision of `admit`; how old its knowledge may be is the policy's to say. */
  readonly admission: (policy: Pick<Policy, 'revocation' | 'relations'>) => Admission
  /** Makes what decides over relations; undefined where the policy has none. */
  readonly relations: (policy: Pick<Policy, 'relations'>) => RelationChecker | undefined
  readonly abuse: AbuseServices
  readonly auditSink: AuditSink
  readonly origin: Origin
  /** Undefined without signing keys: the origin then gets no assertion. */
  readonly assertions: AssertionSigner | undefined
  /** Undefined without signing keys: there is none then. */
  readonly authorizationServer: MakeAuthorizationServer | undefined
  /** Makes what the operators' API works with; how long things live is the policy's to say. */
  readonly admin: (policy: Policy) => AdminOptions
  /** Of Redis, of each key set that is fetched, and of each route of the origin. */
  readonly breakers: Breakers
  /** What all isolates have counted. */
  readonly metrics: Pick<MetricsServices, 'text'> & Pick<Config, 'metricsAccess'>
  /** Undefined where no collector of traces is configured. */
  readonly spans: SpanServices | undefined
  readonly checks: readonly ReadinessCheck[]
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** What an assertion is for where the origin is a service binding and has no URL. */
const BOUND_ORIGIN_AUDIENCE = 'urn:portcullis:origin'

/** Builds the services of an environment. Throws `Misconfigured` with every mistake in it. */
export function createServices(env: GatewayEnv): Services {
  const config = parseConfig(env)
  const now = Date.now
  const signingKeys = config.signingKeys?.keys ?? []
  const breakers = createBreakers({ now })
  const { watch } = breakers
  const redisBreaker = createCircuitBreaker({ name: 'redis', watch, now })
  const metrics = metricsServices({ ...config, breakers, auditDb: env.AUDIT_DB, now })
  const onCall = metrics.redisCall
  const redis = createRedisRest({ ...config.redis, breaker: redisBreaker, onCall })
  // For what is written behind answers: it learns from the breaker, and has no say in it.
  const bystander = bystanderOf(redisBreaker)
  const behindAnswers = createRedisRest({ ...config.redis, breaker: bystander, onCall })
  const { publicUrl } = config
  const ownIssuer = config.signingKeys === undefined ? undefined : publicUrl
  const verifier = createTokenVerifier({
    issuers: config.issuers,
    ownIssuer,
    now,
    tally: metrics.memories.tokens,
    keySets: { watch },
  })
  const references = createReferences({
    audience: publicUrl,
    now,
    tally: metrics.memories.references,
  })
  const relations = relationServices(config, {
    ...{ redis, watch, now },
    tally: metrics.memories.relations,
  })
  const nonceSecret = nonceSecretOf(signingKeys)
  const queue = auditQueueOf(env.AUDIT_QUEUE, config, metrics.audit)
  return {
    publicUrl,
    issuers: config.issuers.map(({ issuer }) => issuer),
    publicKeys: () => publicKeySet(publishedKeys(signingKeys, now())),
    verifier,
    references,
    proofs: ({ nonceRequired }) =>
      createDpopVerifier({ publicUrl, nonceSecret, nonceRequired, now }),
    admission: (policy) =>
      createAdmission({
        store: createUpstashAdmissionStore(redis, relations.checkOf(policy)),
        ...{ references, now, tallies: metrics.memories, local: metrics.local },
        ...policy.revocation,
      }),
    relations: relations.checkerOf,
    abuse: abuseServices(behindAnswers, now),
    auditSink: metrics.metered(
      addressSink(
        queue === undefined ? consoleAuditSink() : batchingAuditSink({ transport: queue }),
        config.auditAddresses,
      ),
    ),
    origin: guardedOrigin({ origin: createOrigin(originOf(env, config)), watch, now }),
    assertions: assertionsOf(config, now),
    authorizationServer: authorizationServerOf(config, { redis, verifier, now }),
    admin: adminServices(config, {
      ...{ rest: redis, auditDb: env.AUDIT_DB, now },
      relations: relations.adminOf,
    }),
    breakers,
    metrics: { text: metrics.text, metricsAccess: config.metricsAccess },
    spans: spanServices(config, metrics.spans, now),
    checks: [
      { name: 'redis', check: () => ping(redis) },
      { name: 'keySets', check: (waitUntil) => verifier.ready(waitUntil) },
      ...(queue === undefined ? [] : [{ name: 'queue', check: () => queueTakesEvents(queue) }]),
    ],
    now,
  }
}

/** A URL wins over a binding: whoever sets it wants another origin than the bound one. */
function originOf({ ORIGIN }: GatewayEnv, { originUrl }: Config): OriginOptions {
  if (originUrl !== undefined) return { url: originUrl }
  if (ORIGIN !== undefined) return { binding: ORIGIN }
  throw new Misconfigured('The environment', ['ORIGIN_URL: is missing'])
}

function assertionsOf(config: Config, now: () => number): AssertionSigner | undefined {
  const keys = config.signingKeys?.keys
  if (keys === undefined) return undefined
  const audience =
    config.originUrl === undefined ? BOUND_ORIGIN_AUDIENCE : new URL(config.originUrl).origin
  return createAssertionSigner({ keys, issuer: config.publicUrl, audience, now })
}

async function ping(redis: RedisRest): Promise<void> {
  const [reply] = await redis.send([['PING']])
  if (reply?.result !== 'PONG') throw new Unavailable('redis', 'refused')
}
