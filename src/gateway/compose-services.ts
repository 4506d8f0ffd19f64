/** The composition root: builds all services of an isolate. */

import type { Context } from 'hono'
import type { JSONWebKeySet } from 'jose'
import { addressSink } from '../audit/address.ts'
import { batchingAuditSink } from '../audit/batching-sink.ts'
import type { AuditDatabase } from '../audit/d1/database.ts'
import type { AuditSink } from '../audit/event.ts'
import {
  type AuditQueue,
  createAuditQueue,
  OVERFLOW_TIMEOUT_MS,
  type QueueBinding,
} from '../audit/queue/audit-queue.ts'
import { createAuditOverflow } from '../audit/redis/overflow.ts'
import { consoleAuditSink } from '../audit/truncate.ts'
import { Misconfigured, Unavailable } from '../errors.ts'
import { type PublicOrigin, publicOrigins } from '../http/public-origin.ts'
import { type Breakers, createBreakers } from '../isolate/breakers.ts'
import type { Tally } from '../isolate/tally.ts'
import { guardedOrigin } from '../origin/guarded-origin.ts'
import { baseOf, type Origin, type OriginOptions } from '../origin/origin.ts'
import { createLocate, type Locate } from '../origin/public-location.ts'
import type { Policy } from '../policy/policy.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { RelationChecker } from '../relations/checker.ts'
import type { ReadinessCheck } from '../routes/health.ts'
import { type AssertionSigner, createAssertionSigner } from '../tokens/assertion.ts'
import { createDpopVerifier, type DpopVerifier, nonceSecretOf } from '../tokens/dpop.ts'
import { createReferences, type References } from '../tokens/references.ts'
import { publicKeySet, publishedKeys } from '../tokens/signing-keys.ts'
import {
  type Config,
  type EnvironmentInput,
  environmentWith,
  type FeatureVariables,
  parseEnvironment,
  redisVariables,
} from '../validators/environment.ts'
import { unusedSetting } from '../validators/feature.ts'
import {
  type FeatureServices,
  featuresOf,
  type OriginParts,
  type OriginServices,
  originsOf,
  relationsOf,
} from './features.ts'
import { type GuardServices, guardServices, redisClients } from './guard-services.ts'
import { type MetricsServices, metricsServices } from './metrics.ts'
import { type Runtime, WORKERS } from './runtime.ts'

/** The environment of a gateway: variables, and on Workers bindings. `parseEnvironment` checks it. */
export type GatewayEnv = Readonly<EnvironmentInput> & {
  readonly AUDIT_QUEUE?: QueueBinding
  readonly AUDIT_DB?: AuditDatabase
}

/** All services of the pipeline, built once for each isolate. */
export interface Services extends FeatureServices, GuardServices {
  readonly publicUrl: string
  /** Identifiers of the trusted issuers. */
  readonly issuers: readonly string[]
  /** Returns the public keys that the gateway publishes at this moment. */
  readonly publicKeys: () => JSONWebKeySet
  readonly references: References
  readonly proofs: DpopVerifier
  /** Undefined if the policy has no relations. */
  readonly relations: RelationChecker | undefined
  readonly auditSink: AuditSink
  readonly origin: Origin
  /**
   * Returns the public URL for a URL of the origin. Undefined with `origins`, because each route then
   * has its own function.
   */
  readonly locate?: Locate | undefined
  /** Undefined if the policy has no `origins`. */
  readonly origins?: OriginServices | undefined
  /** Default: `CF-Connecting-IP`. */
  readonly addressOf?: Runtime['addressOf']
  /** Returns the origin under which the client reached the gateway. */
  readonly publicOriginOf: (c: Context) => PublicOrigin
  /** Default: WebSockets of workerd. */
  readonly upgrades?: Runtime['upgrades']
  /** Default: as on Workers. */
  readonly streams?: Runtime['streams']
  /** Undefined without signing keys, and with `origins`, which sign for each origin. */
  readonly assertions: AssertionSigner | undefined
  /** Gateways with the same signing keys share it. Undefined without signing keys. */
  readonly sharedSecret: string | undefined
  readonly breakers: Breakers
  readonly metrics: Pick<MetricsServices, 'text'> & Pick<Config, 'metricsAccess'>
  readonly checks: readonly ReadinessCheck[]
  /** Returns the number of responses in progress. Default: they are not counted, as on Workers. */
  readonly openResponses?: (() => number) | undefined
}

/** Life of the key that shows that Redis accepts writes. */
const READINESS_SECONDS = 60
/** The audience of assertions if the origin is a service binding and has no URL. */
const BOUND_ORIGIN_AUDIENCE = 'urn:portcullis:origin'

/**
 * Builds every service of the gateway from its environment and its policy. Throws `Misconfigured`,
 * which lists all mistakes of the environment at once.
 */
export function composeServices(
  environment: GatewayEnv,
  policy: Policy,
  runtime: Runtime = WORKERS,
): Services {
  const several = originsOf(policy)
  const variables = variablesOf(policy)
  const config = parseEnvironment(
    environment,
    runtime.environment?.(environment, variables) ?? environmentWith(redisVariables, variables),
    several?.checksOf(environment, policy.routes),
  )
  refuseUnusedSettings(environment, config, policy)
  const { publicUrl } = config
  const { AUDIT_DB: auditDb, AUDIT_QUEUE } = environment
  const now = Date.now
  const originOfUrl = publicOrigins(publicUrl)
  const publicOriginOf = (c: Context) => originOfUrl(c.req.raw.url, runtime.reportedOriginOf?.(c))
  const signingKeys = config.signingKeys?.keys ?? []
  const breakers = createBreakers({ now })
  const { watch } = breakers
  const connect = runtime.redis(config.redis)
  const verdicts = verdictsOf(policy)
  const metrics = metricsServices({
    connect,
    breakers,
    auditDb,
    verdicts,
    now,
    sleep: runtime.sleep,
    spooledEvents: runtime.spooledEvents,
  })
  const clients = redisClients(
    ({ breaker }) =>
      connect({ timeoutMs: config.redis.timeoutMs, breaker, onCall: metrics.redisCall }),
    { watch, now },
  )
  const { redis } = clients
  const references = createReferences({
    audience: publicUrl,
    now,
    tally: metrics.memories.references,
  })
  const sharedSecret = nonceSecretOf(signingKeys)
  const proofs = createDpopVerifier({
    publicUrl,
    nonceSecret: sharedSecret,
    nonceRequired: policy.tokens.dpopNonceRequired,
    now,
  })
  const relations = relationsOf(policy)?.services(config, {
    redis,
    watch,
    tally: metrics.memories.relations,
    now,
  })
  const introspection = featuresOf(policy).find(({ issuerCalls }) => issuerCalls !== undefined)
  const guards = guardServices({
    ...clients,
    policy,
    issuers: config.issuers,
    ownIssuer: config.signingKeys === undefined ? undefined : publicUrl,
    issuerCalls: introspection?.issuerCalls?.(config, { watch, now }),
    references,
    ownSources: policy.tokens.sources,
    relationCheck: relations?.check,
    metrics,
    watch,
    now,
  })
  const { verifier, admission, authorizer } = guards
  const overflow = createAuditOverflow({ redis: connect({ timeoutMs: OVERFLOW_TIMEOUT_MS }) })
  // A Worker without a queue writes its events to the log.
  const queue =
    AUDIT_QUEUE &&
    createAuditQueue({
      queue: AUDIT_QUEUE,
      overflow,
      tally: metrics.audit,
      isPatient: runtime.isPatient,
    })
  const recorder = queue
    ? (runtime.auditSink ?? batchingAuditSink)({ transport: queue, sleep: runtime.sleep })
    : consoleAuditSink(runtime.writeEvent)
  const parts = { config, policy, redis, auditDb, verifier, proofs, admission, authorizer }
  const forFeatures = {
    ...parts,
    relations,
    spanTally: metrics.spans,
    references,
    publicOriginOf,
    watch,
    fetchPublic: runtime.fetchPublic ?? ((input, init) => fetch(input, init)),
    services: () => services,
    now,
  }
  const features: FeatureServices = Object.assign(
    {},
    ...featuresOf(policy).map((feature) => feature.services(forFeatures)),
  )
  const connectOrigin: OriginParts['connect'] = (options, breakers) =>
    guardedOrigin({ origin: runtime.origin(options), watch, now, ...breakers })
  const assertionsFor: OriginParts['assertionsFor'] = (audience) =>
    config.signingKeys &&
    createAssertionSigner({ keys: config.signingKeys.keys, issuer: publicUrl, audience, now })
  const unnamed: OriginParts['unnamed'] = () => {
    const place = originOf(environment, config)
    const base = baseOf(place.url)
    return {
      origin: connectOrigin(place),
      base,
      locate: createLocate([{ base }]),
      assertions: assertionsFor(
        config.originUrl === undefined ? BOUND_ORIGIN_AUDIENCE : new URL(config.originUrl).origin,
      ),
    }
  }
  const services: Services = {
    ...features,
    ...guards,
    ...(several?.services(
      { environment, connect: connectOrigin, assertionsFor, unnamed },
      policy.routes,
    ) ?? unnamed()),
    publicUrl,
    issuers: config.issuers.map(({ issuer }) => issuer),
    publicKeys: () => publicKeySet(publishedKeys(signingKeys, now())),
    references,
    proofs,
    relations: relations?.checker,
    auditSink: metrics.metered(addressSink(recorder, config.auditAddresses)),
    addressOf: runtime.addressOf,
    publicOriginOf,
    upgrades: runtime.upgrades,
    streams: runtime.streams,
    sharedSecret,
    breakers,
    metrics: { text: metrics.text, metricsAccess: config.metricsAccess },
    checks: [
      { name: 'redis', check: () => requireWrites(redis) },
      { name: 'keySets', check: (waitUntil) => verifier.ready(waitUntil) },
      ...(queue ? [{ name: 'queue', check: () => requireQueue(queue) }] : []),
    ],
  }
  return services
}

/** Returns the variables of all features of the policy. */
function variablesOf(policy: Policy): readonly FeatureVariables[] {
  const all = [...featuresOf(policy), relationsOf(policy)].map((feature) => feature?.variables)
  return [...new Set(all)].filter((variables) => variables !== undefined)
}

/** A list without an entry configures nothing. */
const listed = (list: string | undefined) => (list?.trim() === '[]' ? undefined : list)

/** Throws `Misconfigured` if a variable is set for a feature that the policy does not import. */
function refuseUnusedSettings(
  { CLIENTS, ISSUER_CLIENTS, OTLP_ENDPOINT }: GatewayEnv,
  { issuers }: Config,
  { features }: Policy,
): void {
  const mistakes = [
    ...unusedSetting('CLIENTS', listed(CLIENTS), ['authorizationServer'], features),
    ...unusedSetting(
      'ISSUER_CLIENTS',
      listed(ISSUER_CLIENTS),
      ['introspection', 'signIn'],
      features,
    ),
    ...issuers.flatMap(({ introspection, userinfo }, index) => [
      ...unusedSetting(
        `ISSUERS[${index}].introspection`,
        introspection,
        ['introspection'],
        features,
      ),
      ...unusedSetting(`ISSUERS[${index}].userinfo`, userinfo, ['introspection'], features),
    ]),
    ...unusedSetting('OTLP_ENDPOINT', OTLP_ENDPOINT, ['otlp'], features),
  ]
  if (mistakes.length > 0) throw new Misconfigured('The environment', mistakes)
}

/** The attack signatures of all routes share a cache. */
function verdictsOf({ routes }: Policy): Tally | undefined {
  for (const { inspect } of routes) if (inspect?.signatures) return inspect.signatures.tally
  return undefined
}

/** A URL overrides a binding, so that an operator can replace the bound origin. */
function originOf({ ORIGIN }: GatewayEnv, { originUrl }: Config): OriginOptions {
  if (originUrl !== undefined) return { url: originUrl }
  if (ORIGIN !== undefined) return { binding: ORIGIN }
  throw new Misconfigured('The environment', ['ORIGIN_URL: is missing'])
}

async function requireQueue(queue: AuditQueue): Promise<void> {
  if (!queue.takesEvents()) throw new Error('the queue refused the last batch')
}

/** A Redis that is out of memory or a replica answers, but it refuses the writes that requests need. */
async function requireWrites(redis: RedisConnection): Promise<void> {
  const [reply] = await redis.send([['SET', redis.keys.readiness, '1', 'EX', READINESS_SECONDS]])
  if (reply?.result !== 'OK') throw new Unavailable('redis', 'refused')
}
