/** Connects directly to the Redis behind the REST server, for load and statistics. */
import { Redis } from 'ioredis'
import type { RedisCommand, RedisReply, RedisRest } from '../../src/redis/rest.ts'

/** Maximum number of entries in the slow log. */
const SLOW_LOG_LENGTH = 100_000
const MICROS_PER_SECOND = 1_000_000
/** Commands in Redis' statistics that a client sends to run a script. */
const SCRIPTS = ['evalsha', 'eval'] as const

/** Usage of Redis since its start. */
export interface RedisUsage {
  readonly calls: number
  /** Time in scripts, including all their commands. */
  readonly micros: number
  /** All other commands that scripts and clients ran. */
  readonly commands: number
  /** CPU time of the thread that runs commands; includes reading and replying. */
  readonly cpuMicros: number
}

/** A `RedisRest` that sends its commands in the protocol of Redis. */
export interface DirectRedis extends RedisRest {
  usage(): Promise<RedisUsage>
  usedBytes(): Promise<number>
  /** Starts the slow log: records every command that takes at least `micros`. */
  watchSlow(micros: number): Promise<void>
  /** Returns the longest script in the slow log, in microseconds; undefined if there is none. */
  slowestMicros(): Promise<number | undefined>
  close(): void
}

/**
 * Connects and removes the memory limit, which is for tests. Throws if the server does not respond.
 */
export async function connectDirectly(url: string): Promise<DirectRedis> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
  // The error also rejects the waiting commands.
  redis.on('error', () => {})
  await redis.connect()
  await redis.config('SET', 'maxmemory', '0')

  async function send(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
    const pipeline = redis.pipeline()
    for (const [name, ...args] of commands) pipeline.call(String(name), ...args)
    const replies = (await pipeline.exec()) ?? []
    return replies.map(([error, result]) => (error ? { error: error.message } : { result }))
  }

  return {
    send,
    async usage() {
      return parseUsage(await redis.info('commandstats', 'cpu'))
    },
    async usedBytes() {
      return Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1])
    },
    async watchSlow(micros) {
      await redis.config('SET', 'slowlog-max-len', SLOW_LOG_LENGTH)
      await redis.config('SET', 'slowlog-log-slower-than', micros)
      await redis.slowlog('RESET')
    },
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
export function parseUsage(text: string): RedisUsage {
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
  return { calls, micros, commands, cpuMicros }
}
