/** Measures gateways in turn, several times, so that a slow minute meets all of them alike. */
import type { Backends, Counts } from '../backends.ts'
import { drive } from '../load.ts'
import { orderLoad } from '../order-requests.ts'
import { familyCpuMicros } from '../process-times.ts'
import { ratio, rounded } from '../statistics.ts'
import { readingOf, untilQuiet, usageBetween } from '../usage.ts'
import type { Contestant } from './contestant.ts'
import type { Entrant } from './grounds.ts'

/** One measurement of one gateway. */
export interface Bout {
  /** Answers, all of them right. */
  readonly answers: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Of the gateway and all that it started, seconds for 1,000 requests that reached the origin. */
  readonly cpuSeconds: number
  /** Of Redis and its REST server, for as many. */
  readonly redisCpuSeconds: number
  /** For each request. */
  readonly redisCalls: number
  /** Cores that sending took. */
  readonly loadCores: number
  /** Cores that processes of others used meanwhile. */
  readonly otherCores: number
}

export interface Arena {
  readonly entrants: readonly Entrant[]
  readonly backends: Backends
  /** Everybody gets the same. */
  readonly tokens: readonly string[]
  readonly connections: number
  readonly warmUpSeconds: number
  readonly seconds: number
  readonly rounds: number
  readonly onProgress: (what: string) => void
}

const DIGITS = 5
const PER_THOUSAND = 1_000
const MICROS_PER_SECOND = 1_000_000

/** Rounds of each, in the order in which they ran. Throws an `Error` of one line for a wrong answer. */
export async function measureAll(arena: Arena): Promise<ReadonlyMap<Entrant, readonly Bout[]>> {
  const { entrants, warmUpSeconds, seconds, rounds, onProgress } = arena
  const bouts = new Map<Entrant, Bout[]>(entrants.map((entrant) => [entrant, []]))
  for (const entrant of entrants) {
    onProgress(`warming up ${entrant.contestant.title}`)
    await measureOnce(arena, entrant, warmUpSeconds)
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
  { backends, tokens, connections }: Arena,
  { contestant, running: { url, pid } }: Entrant,
  seconds: number,
): Promise<Bout> {
  const before = await readingOf(pid, backends)
  const cpuBefore = familyCpuMicros(pid)
  const driven = await drive({ ...orderLoad(url, 'read', tokens), connections, seconds })
  await untilQuiet(backends)
  const cpuMicros = familyCpuMicros(pid) - cpuBefore
  const { counts, redisMicros, otherCores } = usageBetween(before, await readingOf(pid, backends))
  refuseOther(contestant, { answers: driven.requests, counts, connections })
  const secondsEach = (micros: number) =>
    rounded((ratio(micros, counts.requests) * PER_THOUSAND) / MICROS_PER_SECOND, DIGITS)
  return {
    answers: driven.requests,
    requestsPerSecond: rounded(driven.requests / driven.seconds, 0),
    p50Ms: driven.latencies.percentile(0.5),
    p99Ms: driven.latencies.percentile(0.99),
    cpuSeconds: secondsEach(cpuMicros),
    redisCpuSeconds: secondsEach(redisMicros),
    redisCalls: rounded(ratio(counts.calls, counts.requests), DIGITS),
    loadCores: rounded(driven.loadCores, 2),
    otherCores,
  }
}

export interface Seen {
  readonly answers: number
  /** At the origin and at Redis. */
  readonly counts: Pick<Counts, 'requests' | 'identified' | 'calls'>
  readonly connections: number
}

/**
 * Throws where the origin did not see what was answered, was not told who asks, or Redis was asked
 * otherwise than it should be. Requests that were broken off at the end, one a connection, may have
 * asked Redis and not the origin.
 */
export function refuseOther(
  { title, identifies, redisCalls: [least, most] }: Contestant,
  { answers, counts: { requests, identified, calls }, connections }: Seen,
): void {
  if (requests < answers) throw new Error(`${title}: not every answer came from the origin`)
  if (identified !== (identifies ? requests : 0))
    throw new Error(`${title}: the origin was told who asks ${identified} times of ${requests}`)
  if (calls < least * requests || calls > most * (requests + connections))
    throw new Error(`${title}: ${calls} calls to Redis for ${requests} requests`)
}
