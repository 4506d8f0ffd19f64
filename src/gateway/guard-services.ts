/** The services of the guards, for the gateway and for Hono apps. */
import { createFailureCounter } from '../access/abuse/redis/authentication-failures.ts'
import { createViolationCounter } from '../access/abuse/redis/violations.ts'
import {
  type AbuseCounters,
  type AbuseServices,
  createAbuseServices,
} from '../access/abuse/services.ts'
import {
  type Admission,
  type AdmissionOptions,
  createCallerAdmission,
} from '../access/admission/admission.ts'
import { createRedisAdmissionStore } from '../access/admission/redis/store.ts'
import { createAuthorizer, type PolicyAuthorizer } from '../access/permissions.ts'
import type { RelationCheck } from '../access/relations/redis/check.ts'
import type { References } from '../access/tokens/references.ts'
import { createTokenSources, type TokenSources } from '../access/tokens/token-sources.ts'
import {
  createTokenVerifier,
  type IssuerCalls,
  type ReadyTokenVerifier,
} from '../access/tokens/verifier.ts'
import type { Breakers } from '../isolate/breakers.ts'
import {
  type CircuitBreaker,
  createCircuitBreaker,
  passiveBreakerOf,
} from '../isolate/circuit-breaker.ts'
import type { Policy } from '../policy/policy.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { IssuerConfig } from '../validators/issuer.ts'
import type { TokenSource } from '../validators/token-source.ts'
import type { MetricsServices } from './metrics.ts'
import type { ConnectRedis, Runtime } from './runtime.ts'

export interface RedisClients {
  readonly redis: RedisConnection
  /** For writes after a response: they read the state of the circuit breaker, and do not change it. */
  readonly behindResponses: RedisConnection
}

/** Creates the clients of an isolate. They share a circuit breaker; on a cluster, one for each master. */
export function redisClients(
  connect: ConnectRedis,
  { watch, now }: Pick<GuardServicesOptions, 'watch' | 'now'>,
): RedisClients {
  const known = new Map<string | undefined, CircuitBreaker>()
  function breakerOf(target?: string): CircuitBreaker {
    const breaker = known.get(target) ?? createCircuitBreaker({ name: 'redis', target, watch, now })
    known.set(target, breaker)
    return breaker
  }
  const passiveOf = (target?: string) => passiveBreakerOf(breakerOf(target))
  return {
    redis: connect({ breaker: breakerOf(), breakerOf }),
    behindResponses: connect({ breaker: passiveOf(), breakerOf: passiveOf }),
  }
}

/** What guards store about callers: in Redis, or in the memory of a test. */
export interface GuardStores extends AbuseCounters {
  readonly admission: AdmissionOptions['store']
}

/** Returns the stores of a gateway. `relationCheck` runs inside the admission call. */
export function redisStores(
  clients: RedisClients,
  relationCheck: RelationCheck | undefined,
  now: () => number,
  createStore = createRedisAdmissionStore,
): GuardStores {
  return {
    admission: createStore(clients.redis, relationCheck),
    ...redisCounters(clients, now),
  }
}

/** Returns the counters of abuse in Redis. */
export const redisCounters = (
  { behindResponses }: RedisClients,
  now: () => number,
): AbuseCounters => ({
  failures: createFailureCounter(behindResponses),
  violations: createViolationCounter(behindResponses, now),
})

export interface GuardServicesOptions {
  readonly stores: GuardStores
  readonly policy: Pick<Policy, 'roles' | 'abuse' | 'revocation'>
  /** Heap that cached signed tokens may use. Default 40 MiB. */
  readonly maxCachedBytes?: number | undefined
  readonly issuers: readonly IssuerConfig[]
  /** The gateway's own issuer identifier, if it issues tokens. */
  readonly ownIssuer?: string | undefined
  /** Calls to issuers that verify their tokens themselves. Default: none. */
  readonly issuerCalls?: IssuerCalls | undefined
  /** Accepts opaque tokens and API keys, with `createAdmission`. Default: only JWTs. */
  readonly references?: References | undefined
  /** Creates the admission decision. Default: without references, so that apps need no code for them. */
  readonly admissionBy?: (options: AdmissionOptions) => Admission
  /** Where {@link references} and the gateway's own JWTs are read from. Default `Authorization`. */
  readonly ownSources?: readonly TokenSource[] | undefined
  /** Counters for metrics. Default none. */
  readonly metrics?: Pick<MetricsServices, 'memories' | 'local'>
  /** Default: see `KeySetSourceOptions`. */
  readonly keySetCache?: Runtime['keySetCache']
  readonly watch: Breakers['watch']
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export interface GuardServices extends AbuseServices {
  readonly verifier: ReadyTokenVerifier
  /** Undefined: credentials are read from `Authorization` only. */
  readonly sources: TokenSources | undefined
  readonly admission: Admission
  readonly authorizer: PolicyAuthorizer
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Builds the services of the guards, once for each isolate. */
export function guardServices({
  policy: { roles, abuse, revocation },
  stores,
  maxCachedBytes,
  issuers,
  ownIssuer,
  issuerCalls,
  references,
  admissionBy = createCallerAdmission,
  ownSources,
  metrics,
  keySetCache,
  watch,
  now,
}: GuardServicesOptions): GuardServices {
  return {
    verifier: createTokenVerifier({
      issuers,
      ownIssuer,
      now,
      maxCachedBytes,
      tally: metrics?.memories.tokens,
      keySets: { watch, cache: keySetCache },
      calls: issuerCalls,
    }),
    sources: createTokenSources({
      issuers,
      own: references && { publicUrl: references.audience, sources: ownSources },
    }),
    admission: admissionBy({
      store: stores.admission,
      references,
      maxStalenessMs: revocation.maxStalenessMs,
      observesBans: abuse.bans?.mode === 'observe',
      tallies: metrics?.memories,
      local: metrics?.local,
      now,
    }),
    authorizer: createAuthorizer(roles),
    ...createAbuseServices(abuse, stores, now),
    now,
  }
}
