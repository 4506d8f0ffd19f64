/** The faults of the soak, and the failures that each can cause. */
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import { longestPeriodMs } from '../../src/isolate/circuit-breaker.ts'
import {
  type PlannedFault,
  type PlanOptions,
  planWindows,
  RUBBISH,
  said,
  seededRandom,
} from '../chaos/faults.ts'
import type { Explained, Trouble } from '../chaos/ledger.ts'

export const PROXIED = ['redis', 'keySet', 'origin'] as const
export type Proxied = (typeof PROXIED)[number]

export interface SoakFault extends Explained {
  /** The dependency, or `gateway`: one of the two gateways is killed and restarted. */
  readonly at: Proxied | 'gateway'
  /** Steps of equal length, one after another. */
  readonly steps: readonly Fault[]
}

/** Covers a timeout that starts before the end of a fault and ends after it. */
const DEADLINE_MS = 1_000
/** Clients detect dead connections to a killed process only later. */
const GATEWAY_RECOVERY_MS = 3_000

/**
 * Returns the maximum time for which a circuit breaker may stay open after an outage of `lastedMs`.
 * This is the longest open period that can begin before the outage ended and its last probe failed.
 */
export function breakerRecoveryMs(lastedMs: number): number {
  let index = 0
  // Jitter shortens a period by at most half. This is the earliest start of the next period.
  for (let earliestMs = 0; earliestMs <= lastedMs + DEADLINE_MS; index++)
    earliestMs += longestPeriodMs(index) / 2
  return longestPeriodMs(index - 1) + DEADLINE_MS
}

const NO_REDIS = ['503 dependency_unavailable', '503 temporarily_unavailable'] as const
/** Requests accumulate if each waits for its timeout. */
const OVERLOADED = '503 overloaded'

const redis = (steps: readonly Fault[], explains: readonly Trouble[] = NO_REDIS) =>
  ({ at: 'redis', steps, explains, recoveryMs: breakerRecoveryMs }) satisfies SoakFault
const origin = (steps: readonly Fault[], ...explains: readonly Trouble[]) =>
  ({ at: 'origin', steps, explains, recoveryMs: breakerRecoveryMs }) satisfies SoakFault
const keySet = (steps: readonly Fault[]) =>
  ({ at: 'keySet', steps, explains: [], recoveryMs: () => 0 }) satisfies SoakFault

const SOAK_FAULTS = {
  'redis-refuse': redis([{ kind: 'refuse' }]),
  'redis-hang': redis([{ kind: 'hang' }], [...NO_REDIS, OVERLOADED]),
  'redis-50ms': redis([{ kind: 'latency', ms: 40, jitterMs: 20 }], []),
  'redis-slow': redis([{ kind: 'latency', ms: 200, jitterMs: 200 }], [...NO_REDIS, OVERLOADED]),
  'redis-1s': redis([{ kind: 'latency', ms: 1_000, jitterMs: 200 }], [...NO_REDIS, OVERLOADED]),
  'redis-flap': redis([{ kind: 'flap', upMs: 1_000, downMs: 1_000 }]),
  'redis-rubbish': redis(RUBBISH),
  'redis-reset': redis([{ kind: 'reset', afterBytes: 0 }]),
  'keys-refuse': keySet([{ kind: 'refuse' }]),
  'keys-hang': keySet([{ kind: 'hang' }]),
  'keys-rubbish': keySet([said(200, '{"keys":[]}'), said(503, 'later'), { kind: 'garbage' }]),
  'origin-hang': origin([{ kind: 'hang' }], '504 origin_timeout', OVERLOADED),
  'origin-5xx': origin([said(500, '{"error":"of the origin"}')], '500 origin'),
  'origin-refuse': origin([{ kind: 'refuse' }], '502 origin_unreachable'),
  'origin-reset': origin([{ kind: 'reset', afterBytes: 200 }], '502 origin_unreachable', 'cut'),
  'gateway-kill': {
    at: 'gateway',
    steps: [],
    explains: ['none', 'cut'],
    recoveryMs: () => GATEWAY_RECOVERY_MS,
  },
} as const satisfies Record<string, SoakFault>

export type FaultName = keyof typeof SOAK_FAULTS

export const FAULT_NAMES = Object.keys(SOAK_FAULTS) as readonly FaultName[]

export const faultOf = (name: FaultName): SoakFault => SOAK_FAULTS[name]

/** Not a fault: the measurement of the peak, in which requests may be shed. */
export const FULL_LOAD = 'full-load'

/** Returns the failures that a fault or full load can cause. */
export const explainedBy = (name: string): Explained =>
  name === FULL_LOAD ? { explains: [OVERLOADED], recoveryMs: () => 0 } : faultOf(name as FaultName)

/** Plans a fault for the first half of each window, except the first window, for comparison. */
export const planFaults = (options: PlanOptions<FaultName>): readonly PlannedFault<FaultName>[] =>
  planWindows(options, { active: [0, 0.5], quietWindows: 1, random: seededRandom(options.seed) })
