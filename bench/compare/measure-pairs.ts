/** Measures two gateways in turn, so that noise affects both equally. */
import { orders } from '../load/questions.ts'
import { type Contestant, measureSlices, type Sample } from '../measure/rounds.ts'
import { createPatience } from '../measure/starvation.ts'
import { ratio, rounded } from '../measure/statistics.ts'
import type { Backends } from '../stack/backends.ts'
import type { BenchTokens } from '../stack/credentials.ts'
import type { CompareOptions } from './options.ts'
import type { Side, SideName } from './sides.ts'

export type Slices = Pick<Sample, 'requests' | 'requestsPerSecond' | 'cpuMicros'>

/** One measurement of both gateways, in slices that take turns. */
export interface Pair extends Readonly<Record<SideName, Slices>> {
  /** CPU per request of HEAD divided by that of BASE. */
  readonly cpuRatio: number
  /** Cores used by other processes during the measurement. */
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
  readonly onProgress: (what: string) => void
}

export type MeasuredPairs = Awaited<ReturnType<typeof measurePairs>>

/** Short, because the noise of a machine changes; long enough for responses on a busy machine. */
const SLICE_SECONDS = 0.5
/** About the cost of a request, so that a short load shows it. */
const CALIBRATING_ROUNDS = 500_000
const RATIO_DIGITS = 4

/** Warms both up, then measures pair after pair. Throws for a wrong response. */
export async function measurePairs(measurement: PairsOptions) {
  const { sides, options, onProgress } = measurement
  const patiently = createPatience(onProgress)
  const warmUp = (side: Side) =>
    patiently(async () => {
      onProgress(`warming up ${side.title}`)
      const { backends } = measurement
      const { connections, warmUpSeconds: seconds } = options
      const load = { pace: { connections }, seconds, backends }
      const { samples } = await measureSlices([contestantOf(measurement, side)], load)
      return samples[0]?.redisCalls ?? 0
    })
  /** Calls to Redis per request. */
  const redisCalls = { base: await warmUp(sides.base), head: await warmUp(sides.head) }
  /** Useless rounds of HEAD per request. */
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

/** Measures slices in the order A B B A A B B A, so that steady changes favour none. */
async function measurePair(measurement: PairsOptions, headFirst: boolean): Promise<Pair> {
  const { sides, backends, options } = measurement
  const both = [contestantOf(measurement, sides.base), contestantOf(measurement, sides.head)]
  const { samples } = await measureSlices(both, {
    pace: { connections: options.connections },
    seconds: SLICE_SECONDS,
    slices: Math.max(1, Math.round(options.seconds / SLICE_SECONDS)),
    reversed: headFirst,
    backends,
  })
  const [base, head] = samples as readonly [Sample, Sample]
  const slicesOf = ({ requests, requestsPerSecond, cpuMicros }: Sample): Slices => ({
    requests,
    requestsPerSecond,
    cpuMicros,
  })
  return {
    base: slicesOf(base),
    head: slicesOf(head),
    otherCores: base.otherCores,
    cpuRatio: rounded(ratio(head.cpuMicros, base.cpuMicros), RATIO_DIGITS),
  }
}

/** Measures the cost of useless rounds of HEAD, and sets as many as the options require. */
async function slowDown(measurement: PairsOptions): Promise<number> {
  const { sides, options, onProgress } = measurement
  const { head } = sides
  onProgress(`slowing ${head.title} down by ${options.slowDownPercent} %`)
  await head.burn(0)
  const before = await measurePair(measurement, false)
  await head.burn(CALIBRATING_ROUNDS)
  const burning = await measurePair(measurement, true)
  const added = ratio(burning.cpuRatio, before.cpuRatio) - 1
  if (added <= 0) throw new Error('the machine is too busy to measure the slow-down')
  const rounds = Math.round((options.slowDownPercent / 100 / added) * CALIBRATING_ROUNDS)
  await head.burn(rounds)
  return rounds
}

function contestantOf(
  { tokens, options: { request } }: PairsOptions,
  { id, title, pid, url, redisCalls, settled }: Side,
): Contestant {
  const questions = orders(request, tokens.writers)
  const expected = { origin: 1, redis: redisCalls } as const
  return { id, title, pid, url, questions, expected, ...(settled && { settled }) }
}
