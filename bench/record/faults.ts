/** Plans the faults of a recorded run. */
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import { seededRandom } from '../../dev/fault-proxy/random.ts'
import { PROCESSES } from './terms.ts'

const said = (status: number, body: string): Fault => ({
  kind: 'answer',
  status,
  headers: { 'Content-Type': 'application/json' },
  body,
})

/** Faults between a gateway and Redis. Steps have equal length, one after another. */
const LINK_FAULTS = {
  /** Within the timeout of 250 ms, and beyond it. */
  slow: [{ kind: 'latency', ms: 60, jitterMs: 60 }],
  slower: [{ kind: 'latency', ms: 200, jitterMs: 200 }],
  /** Repeatedly, while the cached state is fresh; then for a long time. */
  hang: [{ kind: 'flap', upMs: 1_200, downMs: 1_600, down: { kind: 'hang' } }, { kind: 'hang' }],
  drop: [{ kind: 'refuse' }],
  /** Redis runs the command, but its reply is lost. */
  cut: [{ kind: 'reset', afterBytes: 0 }],
  half: [{ kind: 'truncate', afterBytes: 120 }],
  thin: [{ kind: 'throttle', bytesPerSecond: 4_000 }],
  flap: [
    { kind: 'flap', upMs: 700, downMs: 300 },
    { kind: 'flap', upMs: 300, downMs: 1_500 },
  ],
  rubbish: [
    { kind: 'garbage' },
    said(200, '[]'),
    said(200, '[{"result":null}]'),
    said(200, '[{"result":[]}]'),
    said(200, '{"result":'),
    said(500, '{"error":"ERR"}'),
    said(429, '{"error":"ERR max requests limit exceeded"}'),
  ],
} as const satisfies Readonly<Record<string, readonly Fault[]>>

/**
 * Faults of processes. A gateway is paused, or killed and restarted. Redis is killed and restarted,
 * with or without its data.
 */
const PROCESS_FAULTS = ['gateway-paused', 'gateway-killed', 'redis-killed', 'redis-lost'] as const

export type LinkFault = keyof typeof LINK_FAULTS
export type FaultName = LinkFault | (typeof PROCESS_FAULTS)[number]

export const FAULT_NAMES: readonly FaultName[] = [
  ...(Object.keys(LINK_FAULTS) as LinkFault[]),
  ...PROCESS_FAULTS,
]

/** Returns the steps of a fault between a gateway and Redis; undefined for other faults. */
export const linkSteps = (name: FaultName): readonly Fault[] | undefined =>
  (LINK_FAULTS as Readonly<Record<string, readonly Fault[]>>)[name]

/** Reports whether a fault is of Redis itself, and therefore affects all gateways. */
export const isOfRedis = (name: FaultName): boolean => name.startsWith('redis-')

/** Faults that occur three times in each round. */
const OFTEN: readonly FaultName[] = ['slow', 'hang']
/** The active share of a fault's window. The rest shows that the system recovers. */
const FAULT_SHARE = 0.75
/** One fault in this many affects all gateways. */
const OF_ALL = 5

/** Times are in seconds since the start of the load. */
export interface PlannedFault {
  readonly name: FaultName
  /** The affected processes. */
  readonly processes: readonly number[]
  readonly startSeconds: number
  readonly endSeconds: number
}

export interface PlanOptions {
  readonly seconds: number
  /** Length of a window. */
  readonly windowSeconds: number
  readonly faults: readonly FaultName[]
  readonly seed: number
}

/**
 * Plans the faults one after another. Each occurs once before any occurs again, each time in a new
 * order.
 */
export function planFaults({
  seconds,
  windowSeconds,
  faults,
  seed,
}: PlanOptions): readonly PlannedFault[] {
  const random = seededRandom(seed)
  const planned: PlannedFault[] = []
  const often = faults.filter((name) => OFTEN.includes(name))
  let round: FaultName[] = []
  // The first quarter of a window has no fault, so a run starts without one.
  for (let at = 0; at + windowSeconds <= seconds; at += windowSeconds) {
    if (round.length === 0) round = shuffled([...faults, ...often, ...often], random)
    const name = round.pop()
    if (name === undefined) break
    const everybody = Array.from({ length: PROCESSES }, (_, index) => index)
    const isEverybody = isOfRedis(name) || planned.length % OF_ALL === OF_ALL - 1
    const count = isEverybody ? PROCESSES : 1 + Math.floor(random() * (PROCESSES - 1))
    planned.push({
      name,
      processes: shuffled(everybody, random).slice(0, count).sort(),
      startSeconds: at + windowSeconds * (1 - FAULT_SHARE),
      endSeconds: at + windowSeconds,
    })
  }
  return planned
}

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => [random(), item] as const)
    .sort(([one], [other]) => one - other)
    .map(([, item]) => item)
}
