/** Measures two gateways in turn, so that whatever slows the machine down meets both alike. */
import type { Backends } from '../backends.ts'
import { drive } from '../load.ts'
import { orderLoad } from '../order-requests.ts'
import { measureOnce, type Round } from '../rounds.ts'
import { ratio, rounded } from '../statistics.ts'
import type { BenchTokens } from '../tokens.ts'
import { readingOf, untilQuiet, usageBetween } from '../usage.ts'
import type { CompareOptions } from './options.ts'
import { createPatience } from './patience.ts'
import type { Side, SideName } from './sides.ts'

/** What a gateway did in its slices of a pair. */
export interface Slices {
  readonly requests: number
  readonly requestsPerSecond: number
  /** User and system time of its process, for each answer. */
  readonly cpuMicros: number
}

/** As long a measurement of each, in slices that take turns. */
export interface Pair extends Readonly<Record<SideName, Slices>> {
  /** HEAD's CPU for each request, as a multiple of BASE's. */
  readonly cpuRatio: number
  /** The same of requests a second. */
  readonly throughputRatio: number
  /** Cores that processes of others used meanwhile. */
  readonly otherCores: number
}

export interface PairsOptions {
  readonly sides: Readonly<Record<SideName, Side>>
  readonly backends: Backends
  readonly tokens: BenchTokens
  readonly options: Pick<
    CompareOptions,
    'pairs' | 'seconds' | 'warmUpSeconds' | 'slowDownPercent' | 'request' | 'connections'
  >
  /** Told what happens next. */
  readonly onProgress: (what: string) => void
}

export interface MeasuredPairs {
  readonly pairs: readonly Pair[]
  /** Of the warm-up, for each request that reached the origin. */
  readonly redisCalls: Readonly<Record<SideName, number>>
  /** Rounds that HEAD computed in vain for each request; 0 without a slow-down. */
  readonly burnedRounds: number
  /** Measurements that a starved machine spoiled. */
  readonly repeats: number
}

/** Short, for a machine's mood changes; long enough that a starved gateway answers at all. */
const SLICE_SECONDS = 0.5
/** So many that they cost about as much as a request does, which a second of load shows well. */
const CALIBRATING_ROUNDS = 500_000
const RATIO_DIGITS = 4

/** Warms both up, then measures pair after pair. Throws for a wrong answer. */
export async function measurePairs(measurement: PairsOptions): Promise<MeasuredPairs> {
  const { sides, options, onProgress } = measurement
  const patiently = createPatience(onProgress)
  const warmUp = async (side: Side) => {
    onProgress(`warming up ${side.layer.title}`)
    const alone = () => measureAlone(measurement, side, options.warmUpSeconds)
    return (await patiently(alone)).redisCalls
  }
  const redisCalls = { base: await warmUp(sides.base), head: await warmUp(sides.head) }
  const burnedRounds =
    options.slowDownPercent === 0 ? 0 : await patiently(() => slowDown(measurement))
  const pairs: Pair[] = []
  while (pairs.length < options.pairs) {
    const pair = await patiently(() => measurePair(measurement, pairs.length % 2 === 1))
    pairs.push(pair)
    onProgress(`pair ${pairs.length} of ${options.pairs}: CPU ratio ${pair.cpuRatio.toFixed(3)}`)
  }
  return { pairs, redisCalls, burnedRounds, repeats: patiently.repeats }
}

/** Slices in the order A B B A A B B A: what changes steadily meanwhile is no one's advantage. */
async function measurePair(measurement: PairsOptions, headFirst: boolean): Promise<Pair> {
  const { sides, backends, options } = measurement
  const count = Math.max(1, Math.round(options.seconds / SLICE_SECONDS))
  const readings = async () => ({
    base: await readingOf(sides.base.target.pid, backends),
    head: await readingOf(sides.head.target.pid, backends),
  })
  const done = { base: { requests: 0, seconds: 0 }, head: { requests: 0, seconds: 0 } }
  const before = await readings()
  for (let slice = 0; slice < count; slice++) {
    const begins = headFirst === (slice % 2 === 0) ? 'head' : 'base'
    for (const name of [begins, begins === 'head' ? 'base' : 'head'] as const) {
      const { requests, seconds } = await driveSide(measurement, sides[name], SLICE_SECONDS)
      done[name].requests += requests
      done[name].seconds += seconds
    }
  }
  await untilQuiet(backends)
  const after = await readings()

  const { counts, otherCores } = usageBetween(before.base, after.base)
  const answered = done.base.requests + done.head.requests
  if (counts.requests < answered) throw new Error('not every answer came from the origin')
  if (counts.identified !== counts.requests || counts.asserted !== counts.requests)
    throw new Error('the origin was not always told who asks')
  const slicesOf = (name: SideName): Slices => {
    const { requests, seconds } = done[name]
    const { gateway } = usageBetween(before[name], after[name])
    return {
      requests,
      requestsPerSecond: rounded(requests / seconds, 0),
      cpuMicros: rounded((gateway.userMicros + gateway.systemMicros) / requests, 1),
    }
  }
  const base = slicesOf('base')
  const head = slicesOf('head')
  return {
    ...{ base, head, otherCores },
    cpuRatio: rounded(ratio(head.cpuMicros, base.cpuMicros), RATIO_DIGITS),
    throughputRatio: rounded(ratio(head.requestsPerSecond, base.requestsPerSecond), RATIO_DIGITS),
  }
}

/** Finds out, beside BASE, what rounds add to HEAD, and sets as many as make the share asked for. */
async function slowDown(measurement: PairsOptions): Promise<number> {
  const { sides, options, onProgress } = measurement
  const { head } = sides
  onProgress(`slowing ${head.layer.title} down by ${options.slowDownPercent} %`)
  await head.burn(0)
  const before = await measurePair(measurement, false)
  await head.burn(CALIBRATING_ROUNDS)
  const burning = await measurePair(measurement, true)
  const added = ratio(burning.cpuRatio, before.cpuRatio) - 1
  if (added <= 0) throw new Error('the machine is too busy to tell what slows a gateway down')
  const rounds = Math.round((options.slowDownPercent / 100 / added) * CALIBRATING_ROUNDS)
  await head.burn(rounds)
  return rounds
}

function measureAlone(measurement: PairsOptions, side: Side, seconds: number): Promise<Round> {
  const { target, layer } = side
  return measureOnce({ ...measurement, target }, layer, seconds)
}

function driveSide({ tokens, options }: PairsOptions, { target, layer }: Side, seconds: number) {
  const { request, connections } = options
  const load = orderLoad(target.urlOf(layer), request, tokens.writers)
  return drive({ ...load, connections, seconds })
}
