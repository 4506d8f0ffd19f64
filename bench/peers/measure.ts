/** Measures gateways in turn in several rounds, so that noise affects all of them equally. */
import type { Backends, Counts } from '../backends.ts'
import { drive, type Load } from '../load.ts'
import { offer } from '../open-load.ts'
import { orderLoad } from '../order-requests.ts'
import { familyCpuMicros } from '../process-times.ts'
import { type LatencyHistogram, ratio, rounded } from '../statistics.ts'
import { readingOf, untilQuiet, usageBetween } from '../usage.ts'
import type { Contestant } from './contestant.ts'
import type { Entrant } from './grounds.ts'

/** One measurement of one gateway. */
export interface Bout {
  /** Number of responses, all correct. */
  readonly answers: number
  /** Requests that could not be sent in time; only at a fixed rate. */
  readonly givenUp: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /**
   * CPU seconds of the gateway and its child processes per 1,000 requests that reached the origin.
   */
  readonly cpuSeconds: number
  /** CPU seconds of Redis and its REST server per 1,000 requests. */
  readonly redisCpuSeconds: number
  /** Calls to Redis per request. */
  readonly redisCalls: number
  /** Audit events per request, as far as their batches were sent. */
  readonly auditEvents: number
  /** Cores used to send requests. */
  readonly loadCores: number
  /** Cores used by other processes during the measurement. */
  readonly otherCores: number
}

/** A closed load, or a fixed rate. */
export type ArenaLoad = { readonly connections: number } | { readonly ratePerSecond: number }

export interface Arena {
  readonly entrants: readonly Entrant[]
  readonly backends: Backends
  /** The same tokens for all gateways. */
  readonly tokens: readonly string[]
  readonly load: ArenaLoad
  /** Warm-up of gateways that compile; others get a quarter of it. 0: they are already warm. */
  readonly warmUpSeconds: number
  readonly seconds: number
  readonly rounds: number
  readonly onProgress: (what: string) => void
}

const DIGITS = 5
/** Divisor of the warm-up for gateways that compile nothing. */
const COLD = 4
/** Maximum number of retried calls to Redis, after a kept connection was closed. */
const RETRIES = 5
const PER_THOUSAND = 1_000
const MICROS_PER_SECOND = 1_000_000

/**
 * Measures rounds of each gateway, in order. Throws an `Error` of one line for a wrong response.
 */
export async function measureAll(arena: Arena): Promise<ReadonlyMap<Entrant, readonly Bout[]>> {
  const { entrants, warmUpSeconds, seconds, rounds, onProgress } = arena
  const bouts = new Map<Entrant, Bout[]>(entrants.map((entrant) => [entrant, []]))
  for (const entrant of entrants) {
    const { title, compiles } = entrant.contestant
    if (warmUpSeconds === 0) break
    onProgress(`warming up ${title}`)
    await measureOnce(arena, entrant, compiles ? warmUpSeconds : warmUpSeconds / COLD)
  }
  for (let round = 1; round <= rounds; round++) {
    for (const [entrant, done] of bouts) {
      onProgress(`round ${round} of ${rounds}: ${entrant.contestant.title}`)
      done.push(await measureOnce(arena, entrant, seconds))
    }
  }
  return bouts
}

async function measureOnce(
  { backends, tokens, load }: Arena,
  { contestant, running: { url, pid } }: Entrant,
  seconds: number,
): Promise<Bout> {
  const before = await readingOf(pid, backends)
  const cpuBefore = familyCpuMicros(pid)
  const sent = await send({ ...orderLoad(url, 'read', tokens), seconds }, load)
  await untilQuiet(backends)
  const cpuMicros = familyCpuMicros(pid) - cpuBefore
  const { counts, redisMicros, otherCores } = usageBetween(before, await readingOf(pid, backends))
  refuseOther(contestant, { answers: sent.answers, counts, strays: sent.strays })
  const secondsEach = (micros: number) =>
    rounded((ratio(micros, counts.requests) * PER_THOUSAND) / MICROS_PER_SECOND, DIGITS)
  return {
    answers: sent.answers,
    givenUp: sent.givenUp,
    requestsPerSecond: rounded(sent.answers / sent.seconds, 0),
    p50Ms: sent.latencies.percentile(0.5),
    p99Ms: sent.latencies.percentile(0.99),
    cpuSeconds: secondsEach(cpuMicros),
    redisCpuSeconds: secondsEach(redisMicros),
    redisCalls: rounded(ratio(counts.calls, counts.requests), DIGITS),
    auditEvents: rounded(ratio(counts.auditEvents, counts.requests), DIGITS),
    loadCores: rounded(sent.loadCores, 2),
    otherCores,
  }
}

interface Sent {
  readonly answers: number
  readonly givenUp: number
  /** Requests that may have been aborted at the end. */
  readonly strays: number
  readonly seconds: number
  readonly latencies: LatencyHistogram
  readonly loadCores: number
}

async function send(requests: Omit<Load, 'connections'>, load: ArenaLoad): Promise<Sent> {
  if ('connections' in load) {
    const driven = await drive({ ...requests, ...load })
    return { ...driven, answers: driven.requests, givenUp: 0, strays: load.connections }
  }
  const offered = await offer({ ...requests, ...load })
  return { ...offered, answers: offered.right, strays: RETRIES }
}

export interface Seen {
  readonly answers: number
  /** Counts at the origin and at Redis. */
  readonly counts: Pick<Counts, 'requests' | 'identified' | 'calls'>
  /** Requests that may have been aborted, in this or the previous measurement. */
  readonly strays: number
}

/**
 * Throws if the counts at the origin, its identified requests, or the calls to Redis are
 * unexpected. An aborted request (at most one per connection) may call Redis but not the origin. On
 * a busy machine it may reach the origin during the next measurement.
 */
export function refuseOther(
  { title, identifies, redisCalls: [least, most] }: Contestant,
  { answers, counts: { requests, identified, calls }, strays }: Seen,
): void {
  if (requests < answers) throw new Error(`${title}: not every answer came from the origin`)
  if (identifies ? identified < answers : identified > strays)
    throw new Error(`${title}: the origin was told who asks ${identified} times of ${requests}`)
  if (calls < least * answers || calls > most * (requests + strays) + strays)
    throw new Error(`${title}: ${calls} calls to Redis for ${requests} requests`)
}
