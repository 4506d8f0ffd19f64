/** Plans the faults of a recorded run. */
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import {
  type PlannedFault as PlannedWindow,
  type PlanOptions,
  planWindows,
  RUBBISH,
  seededRandom,
  shuffled,
} from '../chaos/faults.ts'
import { EVERYBODY, PROCESSES } from './terms.ts'

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
  rubbish: RUBBISH,
} as const satisfies Readonly<Record<string, readonly Fault[]>>

/** Faults of processes: pauses, kills, and restarts of Redis with or without its data. */
const PROCESS_FAULTS = ['gateway-paused', 'gateway-killed', 'redis-killed', 'redis-lost'] as const

/** Faults of the masters of a cluster, and of the network between them and gateways. */
const CLUSTER_FAULTS = [
  'master-killed',
  'master-paused',
  'master-isolated',
  'master-unreachable',
  'slot-moved',
] as const

export type ClusterFault = (typeof CLUSTER_FAULTS)[number]
export type LinkFault = keyof typeof LINK_FAULTS
export type FaultName = LinkFault | ClusterFault | (typeof PROCESS_FAULTS)[number]

export const FAULT_NAMES: readonly FaultName[] = [
  ...(Object.keys(LINK_FAULTS) as LinkFault[]),
  ...PROCESS_FAULTS,
]

/** Faults of a run on a cluster. */
export const CLUSTER_FAULT_NAMES: readonly FaultName[] = [
  ...CLUSTER_FAULTS,
  'gateway-paused',
  'gateway-killed',
]

/** Reports whether a fault is one of a cluster. */
export const isOfCluster = (name: FaultName): name is ClusterFault =>
  CLUSTER_FAULTS.some((fault) => fault === name)

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

export interface PlannedFault extends PlannedWindow<FaultName> {
  readonly processes: readonly number[]
}

/** Plans one fault for each window, after a rest, and chooses the affected processes. */
export function planFaults(options: PlanOptions<FaultName>): readonly PlannedFault[] {
  const random = seededRandom(options.seed)
  const often = options.faults.filter((name) => OFTEN.includes(name))
  const windows = planWindows(options, { often, active: [1 - FAULT_SHARE, 1], random })
  return windows.map((planned, index) => {
    const isEverybody = isOfRedis(planned.name) || index % OF_ALL === OF_ALL - 1
    const count = isEverybody ? PROCESSES : 1 + Math.floor(random() * (PROCESSES - 1))
    return { ...planned, processes: shuffled(EVERYBODY, random).slice(0, count).sort() }
  })
}
