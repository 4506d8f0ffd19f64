/** Measures gateways in turn, several times, so that a slow minute meets all of them alike. */
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
  /** Answers, all of them right. */
  readonly answers: number
  /** Requests that could not be sent in time; at a rate only. */
  readonly givenUp: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Of the gateway and all that it started, seconds for 1,000 requests that reached the origin. */
  readonly cpuSeconds: number
  /** Of Redis and its REST server, for as many. */
  readonly redisCpuSeconds: number
  /** For each request. */
  readonly redisCalls: number
  /** For each request, as far as their batches are out. */
  readonly auditEvents: number
  /** Cores that sending took. */
  readonly loadCores: number
  /** Cores that processes of others used meanwhile. */
  readonly otherCores: number
}

/** As fast as answers come, or at a rate. */
export type ArenaLoad = { readonly connections: number } | { readonly ratePerSecond: number }

export interface Arena {
  readonly entrants: readonly Entrant[]
  readonly backends: Backends
  /** Everybody gets the same. */
  readonly tokens: readonly string[]
  readonly load: ArenaLoad
  /** Of those that compile; the others get a quarter of it. 0: they are warm. */
  readonly warmUpSeconds: number
  readonly seconds: number
  readonly rounds: number
  readonly onProgress: (what: string) => void
}

const DIGITS = 5
/** What compiles nothing is as fast soon after its start. */
const COLD = 4
/** A call to Redis that found its kept connection closed is made again. */
const RETRIES = 5
const PER_THOUSAND = 1_000
const MICROS_PER_SECOND = 1_000_000

/** Rounds of each, in the order in which they ran. Throws an `Error` of one line for a wrong answer. */
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
  /** Requests that may have been broken off at the end. */
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
  /** At the origin and at Redis. */
  readonly counts: Pick<Counts, 'requests' | 'identified' | 'calls'>
  /** Requests that may have been broken off, here and by whoever was measured before. */
  readonly strays: number
}

/**
 * Throws where the origin did not see what was answered, was not told who asks, or Redis was asked
 * otherwise than it should be. Requests that are broken off at the end, one a connection, may ask
 * Redis and not the origin, or reach it on a busy machine when somebody else is measured already.
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
