/** The stores of a guarded app in the memory of a test. */

import type { AbuseCounters } from '../access/abuse/services.ts'
import type { AdmissionStore } from '../access/admission/store.ts'
import type { Revocations } from '../access/revocation/revocation.ts'
import { createMemoryFailureCounter, createMemoryViolationCounter } from './memory-counters.ts'
import { createMemoryStore } from './memory-store.ts'

/** For the option `redis` of a guard. Guards that share it are one system, as they are over one Redis. */
export interface MemoryStoreOfGuards {
  /** What the guards read and write. A test does not need it. */
  readonly stores: AbuseCounters & {
    readonly admission: AdmissionStore
    readonly revocations: Revocations
  }
  /** Milliseconds since the epoch: the clock of the guards. */
  now(): number
  /** Moves the clock of the guards forward, beside the clock of the process. */
  advanceSeconds(seconds: number): void
}

/**
 * Creates empty stores for a guarded app in a test: limits, revocations and bans decide as they do in Redis, and
 * no process is needed. The clock is that of the process, so fake timers move it; `advanceSeconds` moves it too.
 *
 * Every request is checked, whatever `revocation.maxStalenessMs` allows, and leases of limits have no effect.
 * Does NOT share anything between processes: it throws a `TypeError` if `NODE_ENV` is `production`.
 *
 * @example
 * ```ts
 * const store = memoryStore()
 * const guard = portcullis({ issuers: [issuer.entry], redis: store, limits: { standard: '2/min' } })
 * ```
 */
export function memoryStore(): MemoryStoreOfGuards {
  if (environmentName() === 'production')
    throw new TypeError('memoryStore() is for tests: with NODE_ENV=production, use Redis')
  let aheadMs = 0
  const now = () => Date.now() + aheadMs
  const { admission, revocations, bans } = createMemoryStore(now)
  return {
    stores: {
      admission,
      revocations,
      failures: createMemoryFailureCounter(now),
      violations: createMemoryViolationCounter(bans, now),
    },
    now,
    advanceSeconds(seconds) {
      if (!(seconds >= 0)) throw new TypeError('advanceSeconds: the clock only moves forward')
      aheadMs += seconds * 1000
    },
  }
}

const environmentName = (): string | undefined =>
  (globalThis as { process?: { readonly env?: { readonly NODE_ENV?: string } } }).process?.env
    ?.NODE_ENV
