/**
 * The measuring frame: contestants take turns in rounds, so that noise affects all of them equally.
 * Reads CPU, latencies, and the counts at origin and Redis. A scenario only describes its contestants
 * and what to expect of them.
 */
import { type Answers, sendClosed } from '../load/closed.ts'
import type { Question } from '../load/questions.ts'
import { totalMicros } from '../processes/proc.ts'
import type { Backends, Counts } from '../stack/backends.ts'
import { medianOf, ratio, rounded, sumOf } from './statistics.ts'
import { type Usage, untilQuiet, withUsage } from './usage.ts'

export interface Expected {
  readonly origin: 0 | 1
  readonly redis: number | readonly [least: number, most: number]
  /** Maximum number of additional calls to Redis. Default 0. */
  readonly redisBeside?: number
  /** Whether the origin must receive the caller's identity. Default true. */
  readonly identified?: boolean
  /** Whether the origin also receives an assertion. Default: the value of `identified`. */
  readonly asserted?: boolean
  /** Aborted requests of the previous contestant that may arrive late. Default 0. */
  readonly late?: number
}

/** A closed load. `mayShed`: whether a 503 because of the load is allowed. */
export interface Pace {
  readonly connections: number
  readonly mayShed?: boolean
}

/** A gateway that is measured, and its load. */
export interface Contestant {
  readonly id: string
  readonly title: string
  /** The measured process. Its descendants are included. */
  readonly pid: number
  /** Scheme, authority and path prefix. */
  readonly url: string
  readonly questions: readonly Question[]
  readonly expected: Expected
  /** Creates the state and the requests of a measurement. Default: `questions`. */
  prepare?(round: number): Promise<readonly Question[]>
  /** Resolves when nothing of the measured requests is left to do. Its CPU time counts. */
  settled?(): Promise<void>
  /** Checks a measurement, after the counts. Throws an `Error` of one line. */
  check?(sample: Sample): Promise<unknown> | undefined
}

/** The values of a sample, with the decimal places to which they are rounded. */
const DIGITS = {
  /** Number of correct responses. */
  requests: 0,
  /** Number of 503 responses, if allowed. */
  shed: 0,
  requestsPerSecond: 0,
  meanMs: 3,
  p50Ms: 2,
  p95Ms: 2,
  p99Ms: 2,
  /** CPU time of the contestant per request: both, user and system. */
  cpuMicros: 1,
  cpuUserMicros: 1,
  cpuSystemMicros: 1,
  /** CPU time of Redis and its REST server per request. */
  redisCpuMicros: 1,
  /** HTTP calls to Redis per request. */
  redisCalls: 4,
  /** Audit events per request, as far as their batches were sent. */
  auditEvents: 4,
  gatewayCores: 2,
  redisCores: 2,
  /** Cores that the load used. Close to 1: it could not send more. */
  loadCores: 2,
  /** Cores used by other processes during the measurement. */
  otherCores: 2,
}
/** One measurement of one contestant. */
export type Sample = Readonly<Record<keyof typeof DIGITS, number>>
const KEYS = Object.keys(DIGITS) as (keyof Sample)[]
const MICROS_PER_SECOND = 1_000_000

/** The medians of a contestant's rounds, and the rounds. */
export interface Summary extends Sample {
  readonly id: string
  readonly title: string
  readonly rounds: readonly Sample[]
}

/** Summarises rounds. Throws a `RangeError` if there are none. */
export function summaryOf(
  { id, title }: Pick<Contestant, 'id' | 'title'>,
  rounds: readonly Sample[],
): Summary {
  const medians = Object.fromEntries(
    KEYS.map((key) => [key, medianOf(rounds, key, DIGITS[key])]),
  ) as unknown as Sample
  return { id, title, ...medians, rounds }
}

export interface RoundsOptions {
  readonly rounds: number
  readonly seconds: number
  /** Unmeasured load of each contestant before the first round. 0: they are already warm. */
  readonly warmUpSeconds?: number
  /** Unmeasured load directly before each measurement. Default 0. */
  readonly heatSeconds?: number
  readonly pace: Pace
  readonly backends: Backends
  readonly onProgress: (what: string) => void
}

/** Measures all contestants in turn. Throws for a wrong response or a wrong count. */
export async function measureRounds(
  contestants: readonly Contestant[],
  options: RoundsOptions,
): Promise<readonly Summary[]> {
  const { rounds, seconds, warmUpSeconds = 0, heatSeconds = 0, onProgress, backends } = options
  if (warmUpSeconds > 0)
    for (const contestant of contestants) {
      onProgress(`warming up: ${contestant.title}`)
      // Its calls are not counted: until Redis has a script, each connection sends it.
      await send(contestant, { ...options, seconds: warmUpSeconds })
      await untilQuiet(backends)
    }
  const samples = await inTurn(contestants, rounds, async (contestant, round) => {
    onProgress(`round ${round} of ${rounds}: ${contestant.title}`)
    const questions = (await contestant.prepare?.(round)) ?? contestant.questions
    const prepared = { ...contestant, questions }
    if (heatSeconds > 0) {
      await send(prepared, { ...options, seconds: heatSeconds })
      await untilQuiet(backends)
    }
    const { samples } = await measureSlices([prepared], { ...options, seconds })
    const [sample] = samples as [Sample]
    await contestant.check?.(sample)
    return sample
  })
  return contestants.map((contestant) => summaryOf(contestant, samples.get(contestant) ?? []))
}

/** Measures each item once per round, in order. Returns the rounds of each. */
export async function inTurn<Item, Result>(
  items: readonly Item[],
  rounds: number,
  measure: (item: Item, round: number) => Promise<Result>,
): Promise<ReadonlyMap<Item, readonly Result[]>> {
  const done = new Map<Item, Result[]>(items.map((item) => [item, []]))
  for (let round = 1; round <= rounds; round++)
    for (const [item, results] of done) results.push(await measure(item, round))
  return done
}

/**
 * Measures contestants together. With several slices the order alternates (A B B A), so that steady
 * changes favour none. The samples have the counts of all contestants together.
 */
export async function measureSlices(
  contestants: readonly Contestant[],
  options: Pick<RoundsOptions, 'seconds' | 'pace' | 'backends'> & {
    readonly slices?: number
    readonly reversed?: boolean
  },
): Promise<{ readonly samples: readonly Sample[]; readonly counts: Counts }> {
  const { slices = 1, reversed = false, backends } = options
  const pids = contestants.map(({ pid }) => pid)
  const { result: sent, usage } = await withUsage(pids, backends, async () => {
    const sent = contestants.map((): Answers[] => [])
    for (let slice = 0; slice < slices; slice++) {
      const order = [...contestants.keys()]
      if (reversed === (slice % 2 === 0)) order.reverse()
      for (const at of order) sent[at]?.push(await send(contestants[at] as Contestant, options))
    }
    for (const { settled } of contestants) await settled?.()
    return sent
  })
  const [first] = contestants
  if (first === undefined) throw new RangeError('measureSlices: no contestants')
  const all = sent.flat()
  checkCounts(
    contestants.map(({ title }) => title).join(' and '),
    {
      answers: sumOf(all, ({ right }) => right),
      // Requests in progress at the end may reach origin, Redis, or both.
      aborted: sumOf(all, ({ shed }) => options.pace.connections + shed),
      counts: usage.counts,
    },
    first.expected,
  )
  return {
    samples: sent.map((each, index) => sampleOf(each, usage, index, contestants.length)),
    counts: usage.counts,
  }
}

async function send(
  { url, questions }: Pick<Contestant, 'url' | 'questions'>,
  { pace, seconds }: Pick<RoundsOptions, 'pace' | 'seconds'>,
): Promise<Answers> {
  return sendClosed({ url, questions, ...pace, until: { seconds } })
}

function sampleOf(
  sent: readonly Answers[],
  { counts, processes, redisMicros, otherCores }: Usage,
  index: number,
  contestants: number,
): Sample {
  const [first] = sent as readonly [Answers]
  const [requests, shed, seconds] = (['right', 'shed', 'seconds'] as const).map((key) =>
    sumOf(sent, (one) => one[key]),
  ) as [number, number, number]
  // Aborted requests use CPU as well, if they reached the origin.
  const handled = contestants > 1 ? requests : Math.max(counts.requests, requests + shed)
  const each = (total: number) => ratio(total, handled)
  const times = processes[index] ?? { userMicros: 0, systemMicros: 0 }
  const cores = (micros: number) => micros / MICROS_PER_SECOND / seconds
  const sample: Sample = {
    requests,
    shed,
    requestsPerSecond: requests / seconds,
    meanMs: first.latencies.meanMs,
    p50Ms: first.latencies.percentile(0.5),
    p95Ms: first.latencies.percentile(0.95),
    p99Ms: first.latencies.percentile(0.99),
    cpuMicros: each(totalMicros(times)),
    cpuUserMicros: each(times.userMicros),
    cpuSystemMicros: each(times.systemMicros),
    redisCpuMicros: each(redisMicros),
    redisCalls: each(counts.calls),
    auditEvents: each(counts.auditEvents),
    gatewayCores: cores(totalMicros(times)),
    redisCores: cores(redisMicros),
    loadCores: first.loadCores,
    otherCores,
  }
  return Object.fromEntries(
    KEYS.map((key) => [key, rounded(sample[key], DIGITS[key])]),
  ) as unknown as Sample
}

/** Maximum share of repeated or late requests, and a minimum number for a slow machine. */
const STRAY_SHARE = 0.02
const MIN_STRAYS = 2

export interface Counted {
  readonly answers: number
  /** Requests that may have been aborted at the end: they may reach origin, Redis, or both. */
  readonly aborted: number
  readonly counts: Omit<Counts, 'auditEvents'>
}

/** Throws an `Error` of one line that names the count which differs from what is expected. */
export function checkCounts(
  title: string,
  { answers, aborted, counts }: Counted,
  { origin, redis, redisBeside = 0, identified = true, asserted = identified, late = 0 }: Expected,
): void {
  const { requests, calls } = counts
  const [least, most] = typeof redis === 'number' ? [redis, redis] : redis
  const strays = Math.max(answers * STRAY_SHARE, MIN_STRAYS) + aborted
  if (requests < origin * answers || requests > origin * (answers + strays) + late)
    throw new Error(`${title}: ${requests} requests at the origin for ${answers} responses`)
  const isExpected = (count: number, isSent: boolean) => {
    if (!isSent) return count <= late
    return late > 0 ? count >= answers : count === requests
  }
  if (!isExpected(counts.identified, identified) || !isExpected(counts.asserted, asserted))
    throw new Error(
      `${title}: of ${requests} requests at the origin, ${counts.identified} had an identity ` +
        `and ${counts.asserted} an assertion`,
    )
  if (calls < least * answers || calls > most * (answers + strays) + redisBeside + late)
    throw new Error(`${title}: ${calls} calls to Redis for ${answers} responses`)
}
