/** What goes wrong in a recorded run, and when. */
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import { seededRandom } from '../../dev/fault-proxy/random.ts'
import { PROCESSES } from './terms.ts'

const said = (status: number, body: string): Fault => ({
  kind: 'answer',
  status,
  headers: { 'Content-Type': 'application/json' },
  body,
})

/** Between a gateway and Redis, one after the other in equal parts of the time. */
const LINK_FAULTS = {
  /** Within the deadline of 250 ms, and beyond it. */
  slow: [{ kind: 'latency', ms: 60, jitterMs: 60 }],
  slower: [{ kind: 'latency', ms: 200, jitterMs: 200 }],
  /** Again and again, while what is known is fresh; and for long. */
  hang: [{ kind: 'flap', upMs: 1_200, downMs: 1_600, down: { kind: 'hang' } }, { kind: 'hang' }],
  drop: [{ kind: 'refuse' }],
  /** Redis has done what it was asked, and nobody hears of it. */
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

/** Of processes. A gateway is stopped for a while, or killed and started; so is Redis, and it keeps its data, or not. */
const PROCESS_FAULTS = ['gateway-paused', 'gateway-killed', 'redis-killed', 'redis-lost'] as const

export type LinkFault = keyof typeof LINK_FAULTS
export type FaultName = LinkFault | (typeof PROCESS_FAULTS)[number]

export const FAULT_NAMES: readonly FaultName[] = [
  ...(Object.keys(LINK_FAULTS) as LinkFault[]),
  ...PROCESS_FAULTS,
]

/** Undefined for what is not between a gateway and Redis. */
export const linkSteps = (name: FaultName): readonly Fault[] | undefined =>
  (LINK_FAULTS as Readonly<Record<string, readonly Fault[]>>)[name]

/** Of Redis itself, and therefore of everybody. */
export const isOfRedis = (name: FaultName): boolean => name.startsWith('redis-')

/** Of these there are three in each round. */
const OFTEN: readonly FaultName[] = ['slow', 'hang']
/** A fault is on for this part of its stretch; the rest shows that what was wrong is over. */
const FAULT_SHARE = 0.75
/** One in so many is everybody's. */
const OF_ALL = 5

/** Seconds since the load began. */
export interface PlannedFault {
  readonly name: FaultName
  /** Whom it concerns. */
  readonly processes: readonly number[]
  readonly startSeconds: number
  readonly endSeconds: number
}

export interface PlanOptions {
  readonly seconds: number
  /** Of a stretch. */
  readonly windowSeconds: number
  readonly faults: readonly FaultName[]
  readonly seed: number
}

/** One after the other, each before any comes again, in an order of its own each time. */
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
  // The first quarter of a stretch is the rest, so a run begins with one.
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
