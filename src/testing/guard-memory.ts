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

export interface MemoryStoreOptions {
  /** For a runner of tests that sets no variable, such as that of Deno. Default false. */
  readonly allowOutsideTests?: boolean
}

/**
 * Creates empty stores for a guarded app in a test: limits, revocations and bans decide as they do in Redis, and
 * no process is needed. The clock is that of the process, so fake timers move it; `advanceSeconds` moves it too.
 *
 * Every request is checked, whatever `revocation.maxStalenessMs` allows, and leases of limits have no effect.
 * Does NOT share anything between processes or isolates, and keeps nothing after their end. So it throws a
 * `TypeError` outside of a test: unless `NODE_ENV` is `test`, or `VITEST` or `NODE_TEST_CONTEXT` is set and `NODE_ENV` is
 * not `production`, or `allowOutsideTests` is true.
 *
 * @example
 * ```ts
 * const store = memoryStore()
 * const guard = portcullis({ issuers: [issuer.entry], redis: store, limits: { standard: '2/min' } })
 * ```
 */
export function memoryStore({
  allowOutsideTests = false,
}: MemoryStoreOptions = {}): MemoryStoreOfGuards {
  if (!allowOutsideTests && !isTest()) throw new TypeError(OUTSIDE_TESTS)
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

const OUTSIDE_TESTS =
  'memoryStore() is for tests: its revocations, bans and limits end with the process. Use Redis; or set ' +
  'NODE_ENV=test, or the option allowOutsideTests, if this is a test'

/** Whether a runner of tests says so: Vitest, Jest and Bun by `NODE_ENV`, that of Node by a variable of its own. */
function isTest(): boolean {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
  const { NODE_ENV, VITEST, NODE_TEST_CONTEXT } = process?.env ?? {}
  if (NODE_ENV === 'test' || NODE_ENV === 'production') return NODE_ENV === 'test'
  return VITEST !== undefined || NODE_TEST_CONTEXT !== undefined
}
