/** Connects directly to the Redis behind the REST server: writes tuples, reads statistics. */
import { Redis } from 'ioredis'
import { createRelationTuples } from '../../src/access/relations/redis/tuples.ts'
import { MAX_TUPLES_PER_WRITE, type RelationTuples } from '../../src/access/relations/store.ts'
import type { RelationTuple } from '../../src/access/relations/tuple.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { rounded } from '../measure/statistics.ts'
import { organisationsIn, tenantOf, tuplesOf } from './graph.ts'
import type { SlowGraph } from './slow-graphs.ts'

const SLOW_LOG_LENGTH = 100_000
const MICROS_PER_SECOND = 1_000_000
/** Commands in Redis' statistics that a client sends to run a script. */
const SCRIPTS = ['evalsha', 'eval'] as const

/** A `RedisConnection` that sends its commands in the protocol of Redis. */
export type DirectRedis = Awaited<ReturnType<typeof connectDirectly>>

/** Connects and removes the memory limit, which is for tests. */
export async function connectDirectly(url: string) {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
  // The error also rejects the waiting commands.
  redis.on('error', () => {})
  await redis.connect()
  await redis.config('SET', 'maxmemory', '0')

  const send: RedisConnection['send'] = async (commands) => {
    const pipeline = redis.pipeline()
    for (const [name, ...args] of commands) pipeline.call(String(name), ...args)
    const replies = (await pipeline.exec()) ?? []
    return replies.map(([error, result]) => (error ? { error: error.message } : { result }))
  }

  return {
    keys: DEFAULT_KEYS,
    send,
    /** Returns the usage of Redis since its start. */
    usage: async () => parseUsage(await redis.info('commandstats', 'cpu')),
    async usedBytes() {
      return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1])
    },
    /** Starts the slow log: records every command that takes at least `micros`. */
    async watchSlow(micros: number) {
      await redis.config('SET', 'slowlog-max-len', SLOW_LOG_LENGTH)
      await redis.config('SET', 'slowlog-log-slower-than', micros)
      await redis.slowlog('RESET')
    },
    /** Returns the longest script in the slow log, in microseconds; undefined if there is none. */
    async slowestMicros() {
      const entries = (await redis.slowlog('GET', SLOW_LOG_LENGTH)) as SlowEntry[]
      return longestScript(entries)
    },
    close: () => redis.disconnect(),
  }
}

/** Id, Unix time, microseconds, the command, and other items. */
type SlowEntry = readonly [unknown, unknown, number, readonly string[], ...unknown[]]

/** Returns the longest script of the entries in microseconds; undefined if there is none. */
export function longestScript(entries: readonly SlowEntry[]): number | undefined {
  const micros = entries
    .filter(([, , , [name = '']]) => SCRIPTS.some((script) => script === name.toLowerCase()))
    .map(([, , each]) => each)
  return micros.length === 0 ? undefined : Math.max(...micros)
}

/** Parses the reply to `INFO commandstats cpu`. */
export function parseUsage(text: string) {
  let [calls, micros, commands] = [0, 0, 0]
  for (const [, name, times, spent] of text.matchAll(/^cmdstat_(\S+?):calls=(\d+),usec=(\d+)/gm)) {
    if (SCRIPTS.some((script) => script === name)) {
      calls += Number(times)
      micros += Number(spent)
    } else commands += Number(times)
  }
  let cpuMicros = 0
  for (const [, seconds] of text.matchAll(/^used_cpu_(?:user|sys)_main_thread:(\S+)/gm))
    cpuMicros += Number(seconds) * MICROS_PER_SECOND
  return {
    calls,
    /** Time in scripts, including all their commands. */
    micros,
    /** All other commands that scripts and clients ran. */
    commands,
    /** CPU time of the thread that runs commands; includes reading and replying. */
    cpuMicros,
  }
}

export interface Filled {
  readonly size: number
  /** Memory of one tuple with its indexes, in bytes. */
  readonly bytes: number
  readonly perSecond: number
}

/** Writes the tuples with the store's own script. Throws if some of them exist. */
export async function fillSizes(
  redis: DirectRedis,
  sizes: readonly number[],
  onProgress: (what: string) => void,
): Promise<readonly Filled[]> {
  // Types are needed only for lists.
  const store = createRelationTuples(redis, [])
  const filled: Filled[] = []
  for (const size of sizes) {
    onProgress(`writing ${size.toLocaleString('en')} tuples`)
    const usedBefore = await redis.usedBytes()
    const startedMs = performance.now()
    const written = await loadTuples(store, tenantOf(size), organisations(organisationsIn(size)))
    const seconds = (performance.now() - startedMs) / 1000
    if (written !== size) throw new Error(`${written} tuples were written, not ${size}`)
    filled.push({
      size,
      bytes: rounded(((await redis.usedBytes()) - usedBefore) / size, 0),
      perSecond: rounded(size / seconds, 0),
    })
  }
  return filled
}

function* organisations(count: number) {
  for (let number = 0; number < count; number++) yield* tuplesOf(number)
}

export async function fillSlow(redis: DirectRedis, graphs: readonly SlowGraph[]): Promise<void> {
  const store = createRelationTuples(redis, [])
  for (const { id, tuples } of graphs) await loadTuples(store, id, tuples())
}

const CONCURRENT = 16

/** Writes all of `tuples` and returns their number. Throws if one of them existed before. */
export async function loadTuples(
  store: Pick<RelationTuples, 'write'>,
  tenant: string,
  tuples: Iterable<RelationTuple>,
): Promise<number> {
  const batches = batchesOf(tuples)
  let written = 0
  await Promise.all(
    Array.from({ length: CONCURRENT }, async () => {
      // One shared iterator: each writer takes the next free batch.
      for (const writes of batches) {
        const done = await store.write(tenant, { writes, deletes: [] })
        if (done.written !== writes.length)
          throw new Error(`${writes.length} tuples, of which ${done.written} were written`)
        written += done.written
      }
    }),
  )
  return written
}

function* batchesOf(tuples: Iterable<RelationTuple>): Generator<readonly RelationTuple[]> {
  let batch: RelationTuple[] = []
  for (const tuple of tuples) {
    batch.push(tuple)
    if (batch.length === MAX_TUPLES_PER_WRITE) {
      yield batch
      batch = []
    }
  }
  if (batch.length > 0) yield batch
}
