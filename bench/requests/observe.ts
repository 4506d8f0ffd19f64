/** Sends a load and measures what it uses. */
import type { Counts } from '../backends.ts'
import { ratio, rounded } from '../statistics.ts'
import { readingOf, untilQuiet, usageBetween } from '../usage.ts'
import { type Answers, type Asking, ask } from './ask.ts'
import type { RequestsGateway } from './gateway.ts'

/**
 * Maximum share of requests that may have called Redis again, or late; and a minimum number, for a
 * machine that is too slow for a share.
 */
const STRAY_SHARE = 0.02
const MIN_STRAYS = 2

/** Expected number of calls per response. */
export interface Expected {
  readonly origin: 0 | 1
  readonly redis: 0 | 1
  /** Whether the origin must receive the caller's identity. Default true. */
  readonly identified?: boolean
  /** Whether the origin also receives an assertion. Default: the value of `identified`. */
  readonly asserted?: boolean
  /** Maximum number of additional calls to Redis. Default 0. */
  readonly redisBeside?: number
}

export interface Observed extends Answers {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  /** CPU time of the gateway's process per response, user and system. */
  readonly cpuMicros: number
  readonly counts: Counts
  /** Cores used by other processes during the measurement. */
  readonly otherCores: number
}

/** Sends the load. Throws unless origin and Redis were called as often as expected. */
export async function observe(
  gateway: Pick<RequestsGateway, 'pid' | 'backends'>,
  asking: Asking,
  expected: Expected,
): Promise<Observed> {
  const { pid, backends } = gateway
  const before = await readingOf(pid, backends)
  const answers = await ask(asking)
  await untilQuiet(backends)
  const usage = usageBetween(before, await readingOf(pid, backends))
  const connections = asking.connections + answers.shed
  refuseOther(answers.right, usage.counts, expected, { ...asking, connections })
  const { latencies, seconds, right } = answers
  const { userMicros, systemMicros } = usage.gateway
  return {
    ...answers,
    perSecond: rounded(right / seconds, 0),
    p50Ms: latencies.percentile(0.5),
    p95Ms: latencies.percentile(0.95),
    p99Ms: latencies.percentile(0.99),
    cpuMicros: rounded(ratio(userMicros + systemMicros, right + answers.shed), 1),
    counts: usage.counts,
    otherCores: usage.otherCores,
  }
}

/** Throws an `Error` of one line that names the count which differs. */
export function refuseOther(
  answered: number,
  { requests, identified, asserted, calls }: Counts,
  expected: Expected,
  { url, connections }: Pick<Asking, 'url' | 'connections'>,
): void {
  const { origin, redis, redisBeside = 0 } = expected
  const isIdentified = expected.identified ?? true
  const isAsserted = expected.asserted ?? isIdentified
  // Requests aborted at the end may have reached origin, Redis, or both.
  const strays = Math.max(answered * STRAY_SHARE, MIN_STRAYS) + connections
  const within = (count: number, each: 0 | 1, beside: number) =>
    count >= each * answered && count <= each * (answered + strays) + beside
  const where = new URL(url).pathname
  if (!within(requests, origin, 0))
    throw new Error(`${where}: ${answered} answers, but ${requests} requests to the origin`)
  if (identified !== (isIdentified ? requests : 0) || asserted !== (isAsserted ? requests : 0))
    throw new Error(`${where}: the origin was not told who asks, or was told too much`)
  if (!within(calls, redis, redisBeside))
    throw new Error(`${where}: ${answered} answers, but ${calls} calls to Redis`)
}
