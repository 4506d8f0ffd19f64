/** The composition root: the only place that names adapters. One set of services an isolate. */
import type { JSONWebKeySet } from 'jose'
import { type Admission, createAdmission } from './admission/admission.ts'
import { batchingAuditSink } from './audit/batching-sink.ts'
import { consoleAuditSink } from './audit/console-sink.ts'
import type { AuditSink } from './audit/event.ts'
import { parseConfig } from './config.ts'
import { createOrigin, type Origin } from './origin.ts'
import type { ReadinessCheck } from './routes/health.ts'
import { createAuditQueue } from './stores/queue/audit-queue.ts'
import { createUpstashAdmissionStore } from './stores/upstash/admission-store.ts'
import { createAuditSpill } from './stores/upstash/audit-spill.ts'
import { createRedisRest, type RedisRest } from './stores/upstash/rest.ts'
import { type AssertionSigner, createAssertionSigner } from './tokens/assertion.ts'
import type { TokenVerifier } from './tokens/principal.ts'
import { createTokenVerifier } from './tokens/verifier.ts'

/** What a Worker gives the gateway; checked by `parseConfig`. */
export interface GatewayEnv {
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
  readonly PUBLIC_URL: string
  readonly ORIGIN_URL?: string
  readonly ORIGIN?: Fetcher
  readonly ISSUERS?: string
  readonly SIGNING_KEYS?: string
  readonly AUDIT_QUEUE?: Queue
}

/** Everything that the pipeline needs and does not make itself. */
export interface Services {
  readonly publicUrl: string
  /** Identifiers of the trusted issuers. */
  readonly issuers: readonly string[]
  readonly publicKeys: JSONWebKeySet
  readonly verifier: TokenVerifier
  readonly admission: Admission
  readonly auditSink: AuditSink
  readonly origin: Origin
  /** Undefined without signing keys: the origin then gets no assertion. */
  readonly assertions: AssertionSigner | undefined
  readonly checks: readonly ReadinessCheck[]
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Builds the services of an environment. Throws `Misconfigured` with every mistake in it. */
export function createServices(env: GatewayEnv): Services {
  const config = parseConfig(env)
  const now = Date.now
  const redis = createRedisRest(config.redis)
  return {
    publicUrl: config.publicUrl,
    issuers: config.issuers.map(({ issuer }) => issuer),
    now,
  }
}
