/** The runtime of a gateway on Node. */
import { setTimeout as wait } from 'node:timers/promises'
import { createLaneAdmissionStore } from '../../access/admission/redis/lane-store.ts'
import type { KeySetCache, StoredKeySet } from '../../access/tokens/key-set-source.ts'
import { OVERFLOW_TIMEOUT_MS } from '../../audit/queue/audit-queue.ts'
import { type Runtime, WORKERS } from '../../gateway/runtime.ts'
import { seriesName } from '../../observability/metrics/counters.ts'
import type { ReadinessCheck } from '../../routes/health.ts'
import { RECHECK_SECONDS } from '../../streams/stream-runtime.ts'
import { watchedResponse } from '../../streams/watched-response.ts'
import { awaitedAuditSink } from './audit/sink.ts'
import { type AuditTrail, createAuditTrail } from './audit/trail.ts'
import { nodeEnvironment } from './environment/node-environment.ts'
import { redisNodeSettings } from './environment/redis-environment.ts'
import { parseRedisUrl } from './environment/redis-url.ts'
import { serverSettings } from './environment/server-environment.ts'
import { createEventLog } from './event-log.ts'
import { createNodeOrigin, type NodeOrigin } from './origin.ts'
import { OriginResponse } from './origin-response.ts'
import { type PlaceHeaders, placeHeaders } from './place-headers.ts'
import { type TrustedProxies, trustedProxies } from './proxy-reports.ts'
import { createPublicFetch } from './public-fetch.ts'
import { connectResp, type RespClient } from './redis/resp.ts'
import type { NodeBindings } from './request-listener.ts'
import type { UpgradedResponse } from './upgraded-response.ts'

/** Environment variables. */
export type Variables = Readonly<Record<string, string | undefined>>

export interface NodeRuntime extends Runtime {
  /** Bindings that replace those of Workers. */
  readonly bindings: AuditTrail['bindings']
  /** Reports whether a trusted proxy made the connection of a request. */
  readonly isFromProxy: TrustedProxies['isFromProxy']
  /** See `PlaceHeaders`. Undefined: no header is withheld. */
  readonly withhold: PlaceHeaders['withhold'] | undefined
  /** Throws `Misconfigured` if the gateway cannot use its Redis (see `RespClient`) or its audit trail. */
  check(): Promise<void>
  /** See `RespClient`. Empty without a cluster. */
  readonly masters: RespClient['masters']
  /** See `RespClient`. */
  readonly promotions: RespClient['promotions']
  /** See `RespClient`. */
  readonly pendingFacts: RespClient['pendingFacts']
  /** Returns the audit events that were spooled, and lost by the log, by `seriesName`. */
  sums(): Iterable<readonly [series: string, sum: number]>
  /** Further checks of readiness. */
  readonly checks: readonly ReadinessCheck[]
  /** Begins to store audit events, if there is an audit database. */
  start(): void
  /** Returns the `sleep` of one gateway. Its waits end when `signal` aborts. */
  sleepUntil(signal: AbortSignal): (ms: number) => Promise<void>
  /** Ends all waits of work after responses, so that it is done now. */
  endWaits(): void
  /** Closes all connections, after the calls of the origin in progress. */
  close(): Promise<void>
}

/** Creates the runtime. Does NOT check the variables: `composeServices` does, with `environment`. */
export function nodeRuntime(variables: Variables): NodeRuntime {
  const { REDIS_URL } = variables
  const settings = serverSettings(variables)
  const { TRUSTED_PROXIES = [], PROXY_HEADER, PROXY_TARGET_HEADERS } = settings
  const proxies = trustedProxies({
    trusted: TRUSTED_PROXIES,
    header: PROXY_HEADER,
    targetHeaders: PROXY_TARGET_HEADERS,
  })
  const places = placeHeaders({
    country: settings.PROXY_COUNTRY_HEADER,
    city: settings.PROXY_CITY_HEADER,
    isFromProxy: proxies.isFromProxy,
  })
  const ended = new AbortController()
  const trail = createAuditTrail(variables)
  const eventLog = createEventLog(process.stdout)
  let resp: RespClient | undefined
  const origins = new Map<string, NodeOrigin>()
  return {
    environment: nodeEnvironment,
    keySetCache: createProcessKeySetCache(),
    redis(config) {
      // After a reload of the policy, the gateways share the socket.
      if (REDIS_URL !== undefined)
        resp ??= connectResp({ ...config, ...redisNodeSettings(variables) })
      const connect = resp?.connect ?? WORKERS.redis(config)
      trail.connect(connect({ timeoutMs: OVERFLOW_TIMEOUT_MS }))
      return connect
    },
    admissionStore: createLaneAdmissionStore,
    origin({ url = '' }) {
      // A reload keeps the connections. Those to an origin that no policy uses end after some seconds.
      const origin = origins.get(url) ?? createNodeOrigin({ url })
      origins.set(url, origin)
      return origin
    },
    fetchPublic: createPublicFetch(),
    bindings: trail.bindings,
    auditSink: (options) => awaitedAuditSink({ ...options, maxWaitMs: trail.maxWaitMs }),
    keepsTrying: () => !ended.signal.aborted,
    writeEvent: eventLog.write,
    upgrades: {
      isPossible: (c) => (c.env as NodeBindings).canUpgrade,
      accept: (received, stream) =>
        (received as unknown as UpgradedResponse).endWith(stream) as unknown as Response,
    },
    streams: {
      recheckSeconds: RECHECK_SECONDS.withFeed,
      isShared: true,
      watch: (response, stream) =>
        response instanceof OriginResponse
          ? (response.watchWith(stream) as unknown as Response)
          : watchedResponse(response, stream),
    },
    sleepUntil: (signal) => {
      const either = AbortSignal.any([ended.signal, signal])
      // Rejects at once when the signal aborts the wait.
      return (ms) => wait(ms, undefined, { signal: either }).catch(() => {})
    },
    addressOf: proxies.addressOf,
    reportedOriginOf: proxies.originOf,
    isFromProxy: proxies.isFromProxy,
    ...(places && { reportedPlaceOf: places.placeOf }),
    withhold: places?.withhold,
    opensListeners: true,
    async check() {
      for (const warning of (await resp?.check()) ?? []) console.warn(warning)
      await trail.open()
    },
    masters: () => resp?.masters() ?? new Map(),
    promotions: () => resp?.promotions() ?? 0,
    pendingFacts: async () => resp?.pendingFacts(),
    *sums() {
      yield [seriesName('portcullis_audit_events_total', ['spooled']), trail.spooled()]
      yield [seriesName('portcullis_audit_events_total', ['lost']), eventLog.lost()]
    },
    get checks() {
      const isCluster = REDIS_URL !== undefined && parseRedisUrl(REDIS_URL)?.lanes !== undefined
      return resp !== undefined && isCluster ? [clusterCheck(resp)] : []
    },
    start: trail.start,
    endWaits: () => ended.abort(),
    async close() {
      await trail.close()
      await eventLog.close()
      resp?.close()
      await Promise.all([...origins.values()].map((origin) => origin.close()))
    },
  }
}

/** It does not decide: one master with a wrong setting would make all gateways unready, and stop all lanes. */
const clusterCheck = ({ problems }: RespClient): ReadinessCheck => ({
  name: 'redisCluster',
  decides: false,
  async check() {
    if (problems().length > 0) throw new Error('the log names the mistakes of the cluster')
  },
})

/**
 * Creates the cache. It has one entry for each issuer of the environment, so it needs no bound. After a
 * reload, the gateway of the new policy finds the key sets here: an issuer that is down at that moment
 * changes nothing.
 */
function createProcessKeySetCache(): KeySetCache {
  const sets = new Map<string, StoredKeySet>()
  return {
    read: async (key) => sets.get(key),
    async write(key, stored) {
      sets.set(key, stored)
    },
  }
}
