/**
 * Reads from outside what the requests of a contestant cost besides its CPU: in Redis, in PostgreSQL and
 * on the disk. Nothing here knows how a gateway stores its events.
 */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Contestant } from '../measure/rounds.ts'
import { ratio, rounded } from '../measure/statistics.ts'
import { familyCpuOf, totalMicros, writtenBytesOf } from '../processes/proc.ts'

/** One round, per response. Warm-up rounds are not included. */
export interface Costs {
  /** Scripts that Redis ran. */
  readonly scripts: number
  /** CPU time of Redis' main thread, with reading and replying. */
  readonly redisMicros: number
  /** Time of one script. 0: none ran. */
  readonly scriptMicros: number
  /** Bytes that the contestant wrote to the disk. */
  readonly writtenBytes: number
  /** CPU time of all processes of PostgreSQL. */
  readonly postgresMicros: number
}

/** Commands in Redis' statistics that run a script. */
const SCRIPTS = /^cmdstat_(?:evalsha|eval|fcall):calls=(\d+),usec=(\d+)/gm
const MAIN_THREAD = /^used_cpu_(?:user|sys)_main_thread:(\S+)/gm
const MICROS_PER_SECOND = 1_000_000

/** Parses the reply to `INFO commandstats cpu`. */
export function parseUsage(text: string) {
  let [calls, micros, cpuMicros] = [0, 0, 0]
  for (const [, times, spent] of text.matchAll(SCRIPTS)) {
    calls += Number(times)
    micros += Number(spent)
  }
  for (const [, seconds] of text.matchAll(MAIN_THREAD))
    cpuMicros += Number(seconds) * MICROS_PER_SECOND
  return { calls, micros, cpuMicros }
}

const POLL_MS = 50
const DRAIN_TIMEOUT_MS = 120_000

export type RedisMeter = Awaited<ReturnType<typeof openRedis>>

/** Connects to the Redis of all contestants. */
export async function openRedis(url: string) {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
  redis.on('error', () => {})
  await redis.connect()
  // The limit of a Redis for tests.
  await redis.config('SET', 'maxmemory', '0')

  /** Returns the entries of a stream that no consumer has stored. */
  async function waitingIn(stream: string): Promise<number> {
    const groups = (await redis.xinfo('GROUPS', stream)) as readonly (readonly unknown[])[]
    const unread = groups.map((group) => {
      const of = (name: string) => Number(group[group.indexOf(name) + 1] ?? Number.NaN)
      return of('pending') + of('lag')
    })
    const length = await redis.xlen(stream)
    return unread.length > 0 && unread.every((count) => count === 0) ? 0 : length
  }

  async function waiting(): Promise<number> {
    let [cursor, count] = ['0', 0]
    do {
      const [next, streams] = await redis.scan(cursor, 'COUNT', 10_000, 'TYPE', 'stream')
      for (const stream of streams) count += await waitingIn(stream)
      cursor = next
    } while (cursor !== '0')
    return count
  }

  return {
    direct: redis,
    /** Returns what Redis has used since its start. */
    usage: async () => parseUsage(await redis.info('commandstats', 'cpu')),
    /** Resolves when each event of every stream is stored. Throws an `Error` after two minutes. */
    async untilDrained(): Promise<void> {
      const endMs = Date.now() + DRAIN_TIMEOUT_MS
      for (let left = await waiting(); left > 0; left = await waiting()) {
        if (Date.now() > endMs) throw new Error(`${left} events are still in the stream`)
        await sleep(POLL_MS)
      }
    },
    close: () => redis.disconnect(),
  }
}

/** Returns the bytes of all files below a directory. */
export function storedBytesIn(directory: string): number {
  let bytes = 0
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name)).size
  return bytes
}

/** Maximum share of scripts for aborted requests, and how many a round may have however short it is. */
const STRAYS = 0.1
const MIN_STRAYS = 4

export interface Meters {
  readonly redis: Pick<RedisMeter, 'usage' | 'untilDrained'>
  /** The process of PostgreSQL; undefined: there is none. */
  readonly postgresPid?: number | undefined
}

/**
 * Returns the contestant with readings before and after each round, which are added to `costs`. A round
 * ends when its events are stored. It fails if Redis ran another number of scripts per response than
 * `scripts`; undefined: any.
 */
export function withCosts(
  contestant: Contestant,
  { redis, postgresPid }: Meters,
  costs: Costs[],
  scripts: number | undefined,
): Contestant {
  const reading = async () => ({
    ...(await redis.usage()),
    written: writtenBytesOf(contestant.pid),
    postgres: postgresPid === undefined ? 0 : totalMicros(familyCpuOf(postgresPid)),
  })
  let before: Awaited<ReturnType<typeof reading>> | undefined
  return {
    ...contestant,
    settled: redis.untilDrained,
    async prepare() {
      before = await reading()
      return contestant.questions
    },
    async check({ requests }) {
      if (before === undefined) throw new Error(`${contestant.title} was not prepared`)
      const after = await reading()
      const calls = after.calls - before.calls
      const each = (total: number, digits = 2) => rounded(ratio(total, requests), digits)
      if (
        scripts !== undefined &&
        !(
          calls >= scripts * requests &&
          calls - scripts * requests <= Math.max(STRAYS * requests, MIN_STRAYS)
        )
      )
        throw new Error(`${contestant.title}: ${each(calls)} scripts for one response`)
      costs.push({
        scripts: each(calls, 3),
        redisMicros: each(after.cpuMicros - before.cpuMicros),
        scriptMicros: calls === 0 ? 0 : rounded((after.micros - before.micros) / calls, 2),
        writtenBytes: each(after.written - before.written, 0),
        postgresMicros: each(after.postgres - before.postgres),
      })
    },
  }
}
