/** The faults of the soak, and which answers each of them can cause. */
import type { Fault } from '../../dev/fault-proxy/fault.ts'

/** Whose connections go through a fault proxy. */
export const PROXIED = ['redis', 'keySet', 'origin'] as const
export type Proxied = (typeof PROXIED)[number]

/**
 * What an answer can be besides those that its request has a right to: `<status> <code>` as in a
 * problem document or an OAuth error, `cut` for a body that broke off, `none` for no answer.
 */
export type Trouble = string

export interface SoakFault {
  /** Where it is, or `gateway`: one of the two is killed and started again. */
  readonly at: Proxied | 'gateway'
  /** One after the other, in equal parts of the time that the fault lasts. */
  readonly steps: readonly Fault[]
  /** What it explains. */
  readonly explains: readonly Trouble[]
  /** How long after its end it explains that still: deadlines, and one period of a breaker. */
  readonly recoveryMs: number
}

/** The longest period of the breakers, its jitter, and a deadline. */
const BREAKER_RECOVERY_MS = 7_000
/** A process that is killed takes connections along that clients only then find dead. */
const GATEWAY_RECOVERY_MS = 3_000

const NO_REDIS = ['503 dependency_unavailable', '503 temporarily_unavailable'] as const
/** Requests pile up where each waits for its deadline. */
const OVERLOADED = '503 overloaded'

const redis = (steps: readonly Fault[], explains: readonly Trouble[] = NO_REDIS) =>
  ({ at: 'redis', steps, explains, recoveryMs: BREAKER_RECOVERY_MS }) satisfies SoakFault
const origin = (steps: readonly Fault[], ...explains: readonly Trouble[]) =>
  ({ at: 'origin', steps, explains, recoveryMs: BREAKER_RECOVERY_MS }) satisfies SoakFault
const keySet = (steps: readonly Fault[]) =>
  ({ at: 'keySet', steps, explains: [], recoveryMs: 0 }) satisfies SoakFault

const JSON_TYPE = { 'Content-Type': 'application/json' }
const said = (
  status: number,
  body: string,
  headers: Record<string, string> = JSON_TYPE,
): Fault => ({
  kind: 'answer',
  status,
  headers,
  body,
})

/** What is no answer of an Upstash REST server to a pipeline. */
const RUBBISH: readonly Fault[] = [
  { kind: 'garbage' },
  said(200, ''),
  said(200, '{"result":'),
  said(200, '[]'),
  said(200, 'null'),
  said(200, '[{"result":null}]'),
  said(200, '[{"result":{}},{"result":[]},{"result":"OK"}]'),
  said(200, '<html>it works</html>', { 'Content-Type': 'text/html' }),
  said(429, '{"error":"ERR max requests limit exceeded"}'),
  said(500, '<html>bad gateway</html>', { 'Content-Type': 'text/html' }),
  said(401, '{"error":"WRONGPASS invalid or missing auth token"}'),
  { kind: 'truncate', afterBytes: 120 },
]

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
    recoveryMs: GATEWAY_RECOVERY_MS,
  },
} as const satisfies Record<string, SoakFault>

export type FaultName = keyof typeof SOAK_FAULTS

export const FAULT_NAMES = Object.keys(SOAK_FAULTS) as readonly FaultName[]

export const faultOf = (name: FaultName): SoakFault => SOAK_FAULTS[name]

/** Not a fault: the measurement of the peak, when a starved process may miss a deadline. */
export const FULL_LOAD = 'full-load'

/** What a fault, or full load, can cause. */
export const explainedBy = (
  name: FaultName | typeof FULL_LOAD,
): Pick<SoakFault, 'explains' | 'recoveryMs'> =>
  name === FULL_LOAD ? { explains: [...NO_REDIS, OVERLOADED], recoveryMs: 0 } : faultOf(name)
