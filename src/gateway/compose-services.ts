/** The composition root: builds all services of an isolate. */

import type { Context } from 'hono'
import { createAdmission } from '../access/admission/admission.ts'
import { createAssertionSigner } from '../access/tokens/assertion.ts'
import { createDpopVerifier, nonceSecretOf } from '../access/tokens/dpop.ts'
import { createReferences } from '../access/tokens/references.ts'
import {
  activeSigningKey,
  publicKeySet,
  publishedKeys,
  reportExpiry,
} from '../access/tokens/signing-keys.ts'
import { issuesTokens } from '../access/tokens/verifier.ts'
import { addressSink } from '../audit/address.ts'
import { batchingAuditSink } from '../audit/batching-sink.ts'
import {
  createAuditQueue,
  OVERFLOW_TIMEOUT_MS,
  type QueueBinding,
} from '../audit/queue/audit-queue.ts'
import { createAuditOverflow } from '../audit/redis/overflow.ts'
import type { GivenDatabase } from '../audit/sql/d1/database.ts'
import { consoleAuditSink } from '../audit/truncate.ts'
import { Misconfigured } from '../errors.ts'
import { publicOrigins } from '../http/public-origin.ts'
import { createBreakers } from '../isolate/breakers.ts'
import type { Tally } from '../isolate/tally.ts'
import { guardedOrigin } from '../origin/guarded-origin.ts'
import { type OriginOptions, parseBase } from '../origin/origin.ts'
import { createLocate } from '../origin/public-location.ts'
import type { Policy } from '../policy/policy.ts'
import { mistakeAt } from '../problems/mistake.ts'
import type { Broadcast } from '../redis/connection.ts'
import type { AdminCall } from '../routes/admin/call.ts'
import { metricsCall } from '../routes/admin/metrics.ts'
import {
  type Config,
  type EnvironmentInput,
  environmentWith,
  type FeatureVariables,
  issuerAgreement,
  needsOrigin,
  parseEnvironment,
  redisVariables,
  withIssuersOf,
} from '../validators/environment.ts'
import { markKeyless } from '../validators/issuer.ts'
import type { ConnectedOrigin, Connections, Core } from './core.ts'
import {
  type Contribution,
  type Feature,
  type FeatureParts,
  type FurtherListener,
  type ListenerServices,
  listFeatures,
  type PlacedApp,
  type Task,
} from './feature.ts'
import { guardServices, redisClients, redisStores } from './guard-services.ts'
import { metricsServices } from './metrics.ts'
import { authorizedOrigin, createAuthorize } from './origin-credentials.ts'
import { requireQueue, requireWrites } from './readiness.ts'
import { type Runtime, runtimeOfWorkers } from './runtime.ts'
import { refuseUnusedSettings } from './unused-settings.ts'

/** The environment of a gateway: variables, and on Workers bindings. `parseEnvironment` checks it. */
export type GatewayEnv = Readonly<EnvironmentInput> & {
  readonly AUDIT_QUEUE?: QueueBinding
  /** A binding of D1, or the database of a server on Node. */
  readonly AUDIT_DB?: GivenDatabase
  /** `on`: a Worker logs each decision with the path of its request. Only for development. */
  readonly DECISION_LOG?: string
}

/** All services of the pipeline, built once for each isolate. */
export interface Services extends Core, ConnectedOrigin {
  /** What the features of the policy add. Default: nothing. */
  readonly contributions?: readonly Contribution[]
  /** Apps for paths of the gateway itself. Default: none. */
  readonly apps?: readonly PlacedApp[]
  /** Calls behind the guards of a route. Default: none. */
  readonly calls?: readonly AdminCall[]
  /** Whether the stages must change nothing. Default false. */
  readonly explains?: boolean
  /** Further listeners of the server, and the services of the gateways behind them. Default: none. */
  readonly listeners?: readonly OpenListener[]
}

export interface OpenListener extends Pick<FurtherListener, 'name' | 'host' | 'port' | 'open'> {
  /** Returns services of a gateway behind the listener, which has no paths of the gateway itself. */
  readonly servicesFor: (changes: Omit<ListenerServices, 'routes'>) => Services
}

/** The audience of assertions if the origin is a service binding and has no URL. */
const BOUND_ORIGIN_AUDIENCE = 'urn:portcullis:origin'

/**
 * Builds every service of the gateway from its environment and its policy. Throws `Misconfigured`,
 * which lists all mistakes of the environment at once. `runtime` is required outside of Cloudflare Workers.
 */
export function composeServices(
  given: GatewayEnv,
  policy: Policy,
  runtime: Runtime = runtimeOfWorkers(),
): Services {
  const environment = withIssuersOf(policy, given)
  const all = listFeatures(policy)
  const variables = [...variablesOf(all), issuerAgreement(policy, given)]
  const parsed = parseEnvironment(
    environment,
    runtime.environment?.(environment, variables) ?? environmentWith(redisVariables, variables),
    [
      ...(policy.routes.some(({ origin }) => origin === undefined) ? [needsOrigin] : []),
      ...all.flatMap((feature) => feature.checksOf?.(environment) ?? []),
    ],
  )
  const { identityHeaders } = policy
  const keyless = all.flatMap((feature) => feature.keylessIssuers?.(parsed) ?? [])
  const config: Config = {
    ...parsed,
    issuers: markKeyless(parsed.issuers, keyless).map((issuer) => ({ ...issuer, identityHeaders })),
  }
  refuseUnusedSettings(environment, config, policy)
  const { publicUrl } = config
  const { AUDIT_DB: auditDb, AUDIT_QUEUE } = environment
  const now = () => Date.now()
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
    ofFeatures: Object.assign({}, ...all.map(({ metrics }) => metrics)),
    now,
    sleep: runtime.sleep,
    gauges: runtime.gauges,
  })
  const clients = redisClients(
    (breakers) =>
      connect({ timeoutMs: config.redis.timeoutMs, ...breakers, onCall: metrics.redisCall }),
    { watch, now },
  )
  const { redis } = clients
  const references = createReferences({
    audience: publicUrl,
    now,
    maxCachedBytes: Math.floor(policy.tokenCacheBytes / 3),
    tally: metrics.memories.references,
  })
  reportExpiry(signingKeys, now())
  const sharedSecret = nonceSecretOf(signingKeys)
  const proofs = createDpopVerifier({
    publicUrl,
    nonceSecret: sharedSecret,
    nonceRequired: policy.tokens.dpopNonceRequired,
    now,
  })
  const calling = { watch, now }
  const forRelations = { ...calling, redis, tally: metrics.memories.relations }
  const relations = findFirst(all, (feature) => feature.relations?.(config, forRelations))
  const guards = guardServices({
    stores: redisStores(clients, relations?.check, now, runtime.admissionStore),
    policy,
    maxCachedBytes: Math.ceil((policy.tokenCacheBytes * 2) / 3),
    issuers: config.issuers,
    ownIssuer: config.signingKeys === undefined ? undefined : publicUrl,
    issuerCalls: findFirst(all, (feature) => feature.issuerCalls?.(config, calling)),
    references,
    admissionBy: createAdmission,
    ownSources: policy.tokens.sources,
    metrics,
    keySetCache: runtime.keySetCache,
    watch,
    now,
  })
  const { verifier } = guards
  const overflow = createAuditOverflow({ redis: connect({ timeoutMs: OVERFLOW_TIMEOUT_MS }) })
  // A Worker without a queue writes its events to the log.
  const queue =
    AUDIT_QUEUE &&
    createAuditQueue({
      queue: AUDIT_QUEUE,
      overflow,
      tally: metrics.audit,
      keepsTrying: runtime.keepsTrying,
    })
  const recorder = queue
    ? (runtime.auditSink ?? batchingAuditSink)({ transport: queue, sleep: runtime.sleep })
    : consoleAuditSink(runtime.writeEvent)
  const core: Core = {
    ...guards,
    publicUrl,
    issuers: config.issuers.map(({ issuer }) => issuer),
    tokenIssuers: config.issuers
      .filter(issuesTokens)
      .map(({ issuer }) => issuer)
      .filter((issuer) => issuer !== publicUrl || all.some((feature) => feature.issuesTokens)),
    publicKeys: () => publicKeySet(publishedKeys(signingKeys, now())),
    references,
    proofs,
    relations: relations?.checker,
    auditSink: metrics.metered(addressSink(recorder, config.auditAddresses)),
    decided: runtime.decided,
    addressOf: runtime.addressOf,
    publicOriginOf,
    upgrades: runtime.upgrades,
    streams: runtime.streams,
    sharedSecret,
    breakers,
    policyDigest: runtime.policyDigest,
    metrics: { text: metrics.text, metricsAccess: config.metricsAccess },
    checks: [
      { name: 'redis', check: () => requireWrites(redis) },
      { name: 'keySets', check: (waitUntil) => verifier.ready(waitUntil) },
      ...(queue ? [{ name: 'queue', check: () => requireQueue(queue) }] : []),
      ...(signingKeys.length > 0
        ? [{ name: 'signingKeys', check: () => activeSigningKey(signingKeys, now()) }]
        : []),
    ],
  }
  const assertionsFor: Connections['assertionsFor'] = (audience) =>
    config.signingKeys &&
    createAssertionSigner({ keys: config.signingKeys.keys, issuer: publicUrl, audience, now })
  const connectionsBy = (
    connect: Connections['connect'],
    authorize?: Connections['authorize'],
  ): Connections => ({
    environment,
    connect,
    assertionsFor,
    ...(authorize && { authorize }),
    connectDefault() {
      const place = selectOrigin(environment, config)
      const base = parseBase(place.url)
      const locate = createLocate([{ base }])
      return {
        origin: connect(place),
        base,
        locateFor: () => locate,
        assertions: assertionsFor(
          config.originUrl === undefined ? BOUND_ORIGIN_AUDIENCE : new URL(config.originUrl).origin,
        ),
      }
    },
  })
  const contributions: Contribution[] = []
  const calls: AdminCall[] = []
  const parts: FeatureParts = {
    ...core,
    config,
    policy,
    redis,
    relationCheck: relations?.check,
    admissionStore: runtime.admissionStore,
    reportedPlaceOf: runtime.reportedPlaceOf,
    auditDb,
    spanTally: metrics.spans,
    counter: metrics.counter,
    fetchPublic: runtime.fetchPublic ?? ((input, init) => fetch(input, init)),
    watch,
    contributed: () => ({ contributions, calls }),
  }
  if (relations !== undefined) contributions.push({ operatorCalls: [relations.calls] })
  if (redis.broadcast) contributions.push({ tasks: [completionOf(redis.broadcast, now)] })
  contributions.push(
    ...all.flatMap((feature) => [
      ...present(feature.guard?.({ core, policy, environment })),
      ...present(feature.create?.(parts)),
    ]),
  )
  calls.push(
    ...contributions.flatMap((each) => each.calls?.() ?? []),
    metricsCall({ ...core.metrics, now }),
  )
  const listeners = contributions.flatMap(({ listener }) => present(listener))
  if (listeners.length > 0 && runtime.opensListeners !== true)
    throw new Misconfigured(
      'The policy',
      listeners.map(({ name }) =>
        mistakeAt('unsupported', ['features'], `${name} needs a listener of its own: Node only`),
      ),
    )
  const authorize = createAuthorize({ environment, watch, now })
  const connected = connectOrigins(
    contributions,
    connectionsBy(
      (options, breakers) =>
        guardedOrigin({ origin: runtime.origin(options), watch, now, ...breakers }),
      authorize,
    ),
  )
  const services: Services = {
    ...core,
    ...connected,
    checks: [...core.checks, ...contributions.flatMap(({ checks = [] }) => checks)],
    origin: authorizedOrigin(connected.origin, policy.routes, authorize),
    contributions,
    calls,
    apps: contributions.flatMap(({ apps }) => apps?.() ?? []),
  }
  const servicesFor: OpenListener['servicesFor'] = ({ origin, ...changes }) => ({
    ...services,
    ...connectOrigins(
      contributions,
      connectionsBy(() => origin),
    ),
    ...changes,
    calls: [],
    apps: [],
  })
  return { ...services, listeners: listeners.map((listener) => ({ ...listener, servicesFor })) }
}

/** Returns the work that completes revocations and bans which a gateway has left. */
const completionOf = (broadcast: Broadcast, now: () => number): Task => ({
  everySeconds: 2,
  async run() {
    // A lane that cannot be reached gets them in a later run.
    await broadcast.complete(now).catch(() => {})
  },
})

/** Returns the work without a request. */
export const tasksOf = ({ contributions = [] }: Services): readonly Task[] =>
  contributions.flatMap(({ tasks = [] }) => tasks)

/** Connects the origins of the policy, or that of the environment. */
export function connectOrigins(
  contributions: readonly Contribution[],
  connections: Connections,
): ConnectedOrigin {
  return (
    findFirst(contributions, ({ connect }) => connect?.(connections)) ??
    connections.connectDefault()
  )
}

function findFirst<Item, Result>(
  items: readonly Item[],
  resultOf: (item: Item) => Result | undefined,
): Result | undefined {
  for (const item of items) {
    const result = resultOf(item)
    if (result !== undefined) return result
  }
  return undefined
}

/** Returns the value in a list, or no value. */
export const present = <Value>(value: Value | undefined): readonly Value[] =>
  value === undefined ? [] : [value]

/** Several features may share variables. */
const variablesOf = (features: readonly Feature[]): readonly FeatureVariables[] => [
  ...new Set(features.flatMap(({ variables }) => present(variables))),
]

/** The attack signatures of all routes share a cache. */
function verdictsOf({ routes }: Policy): Tally | undefined {
  for (const { inspect } of routes) if (inspect?.signatures) return inspect.signatures.tally
  return undefined
}

/** A URL overrides a binding, so that an operator can replace the bound origin. */
function selectOrigin({ ORIGIN }: GatewayEnv, { originUrl }: Config): OriginOptions {
  if (originUrl !== undefined) return { url: originUrl }
  if (ORIGIN !== undefined) return { binding: ORIGIN }
  throw new Misconfigured('The environment', [mistakeAt('missing', ['ORIGIN_URL'], 'is missing')])
}
