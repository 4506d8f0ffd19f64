/** What differs between runtimes: the connections to Redis and to the origin, and the client's address. */
import type { Context } from 'hono'
import type { createRedisAdmissionStore } from '../access/admission/redis/store.ts'
import type { KeySetCache } from '../access/tokens/key-set-source.ts'
import type { BatchingSinkOptions } from '../audit/batching-sink.ts'
import type { AuditEvent, AuditSink } from '../audit/event.ts'
import { Misconfigured } from '../errors.ts'
import type { ReportedOrigin } from '../http/public-origin.ts'
import { IS_WORKERS } from '../isolate/platform.ts'
import { connectingAddress } from '../middleware/client-address.ts'
import type { OwnGauges } from '../observability/metrics/exposition.ts'
import { createOrigin, type Origin, type OriginOptions } from '../origin/origin.ts'
import type { RedisCallOptions } from '../redis/bounded-calls.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { createRedisRest } from '../redis/rest.ts'
import type { Upgrades } from '../routes/web-socket.ts'
import type { StreamRuntime } from '../streams/stream-runtime.ts'
import type { Config, EnvironmentSchema, FeatureVariables } from '../validators/environment.ts'

/** Creates a connection to the Redis of the configuration. Connections may share a socket. */
export type ConnectRedis = (options: RedisCallOptions) => RedisConnection

/** Texts as a proxy has sent them. */
export interface ReportedPlace {
  readonly country?: string | undefined
  readonly city?: string | undefined
}

/** Port: the runtime of a gateway. */
export interface Runtime {
  /** Returns the schema of the variables. Default: the schema of Workers. */
  readonly environment?: (
    environment: object,
    features: readonly FeatureVariables[],
  ) => EnvironmentSchema
  /** Keeps key sets for longer than a gateway lives. Default: see `KeySetSourceOptions`. */
  readonly keySetCache?: KeySetCache | undefined
  /** Default: none. */
  readonly gauges?: OwnGauges | undefined
  /** The SHA-256 of the policy's files, for `/-/readyz`. Default: it is not known. */
  readonly policyDigest?: string | undefined
  redis(config: Config['redis']): ConnectRedis
  /** Creates the store of admission for a connection with lanes. Default: the store of one server. */
  readonly admissionStore?: typeof createRedisAdmissionStore
  origin(options: OriginOptions): Origin
  /**
   * Returns the address of the client, or undefined if it is unknown. It must be one that the client cannot choose:
   * the address of the connection, or a header that a proxy in front of the gateway always overwrites.
   */
  readonly addressOf: (c: Context) => string | undefined
  /** Returns what a trusted proxy reported about the scheme, host and port of a request. Default: nothing. */
  readonly reportedOriginOf?: (c: Context) => ReportedOrigin | undefined
  /** Returns what a trusted proxy reported about the place of the client. Default: the platform reports it, or nothing. */
  readonly reportedPlaceOf?: (c: Context) => ReportedPlace
  /** Writes an audit event to the log, if there is no queue. Default: `console.log`. */
  readonly writeEvent?: ((line: string) => void) | undefined
  /**
   * Receives each decision with the path of its request, which an audit event never has. For development: a path can
   * be personal data, and has any character that the client sent. Default: nothing.
   */
  readonly decided?: ((event: AuditEvent, path: string) => void) | undefined
  /** Creates the sink for a gateway with a queue. Default: `batchingAuditSink`. */
  readonly auditSink?: (options: BatchingSinkOptions) => AuditSink
  /** See `keepsTrying` of `createAuditQueue`. Default: events wait for no queue. */
  readonly keepsTrying?: () => boolean
  /** Waits, for work after responses. A runtime that stops ends the wait early. Default: a timer. */
  readonly sleep?: ((ms: number) => Promise<void>) | undefined
  /** Default: WebSockets of workerd. */
  readonly upgrades?: Upgrades | undefined
  /** How open streams are ended. Default: as on Workers. */
  readonly streams?: StreamRuntime | undefined
  /** Whether features may have listeners of their own. Default false. */
  readonly opensListeners?: boolean
  /** Calls only addresses of the public internet. Default: `fetch`, which reaches no other on Workers. */
  readonly fetchPublic?: typeof fetch
}

/**
 * Cloudflare Workers: Redis over HTTP, the origin by `fetch`, and the client's address in `CF-Connecting-IP`, which
 * Cloudflare overwrites. Elsewhere a client can forge this header: `{ ...WORKERS, addressOf }` replaces it.
 */
export const WORKERS: Runtime = {
  addressOf: connectingAddress,
  redis: (config) => (options) => createRedisRest({ ...config, ...options }),
  origin: createOrigin,
}

/** Returns the runtime of Workers. Throws `Misconfigured` elsewhere. */
export function runtimeOfWorkers(): Runtime {
  if (IS_WORKERS) return WORKERS
  throw new Misconfigured('composeServices()', [
    'outside of Cloudflare Workers, pass a runtime as the third argument, such as { ...WORKERS, addressOf }: ' +
      'clients can forge CF-Connecting-IP',
  ])
}
