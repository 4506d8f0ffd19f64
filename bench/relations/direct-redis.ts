/** The Redis behind the REST server, without that server: to load it, and to ask what it did. */
import { Redis } from 'ioredis'
import type { RedisCommand, RedisReply, RedisRest } from '../../src/stores/upstash/rest.ts'

/** Entries that its log of slow commands keeps. */
const SLOW_LOG_LENGTH = 100_000
const MICROS_PER_SECOND = 1_000_000
/** Commands in Redis' own statistics that are run by a client, not by a script. */
const SCRIPTS = ['evalsha', 'eval'] as const

/** What Redis has done since the start. */
export interface RedisUsage {
  readonly calls: number
  /** Time in them, everything that they call included. */
  readonly micros: number
  /** Commands of any other kind that were run, by scripts and clients. */
  readonly commands: number
  /** CPU of the thread that runs commands; reading and answering is in it, too. */
  readonly cpuMicros: number
}

/** Sends what the port of the stores sends, in the protocol of Redis. */
export interface DirectRedis extends RedisRest {
  usage(): Promise<RedisUsage>
  usedBytes(): Promise<number>
  /** From now on, keeps every command that takes so long. */
  watchSlow(micros: number): Promise<void>
  /** The longest script that was kept, microseconds; undefined where there was none. */
  slowestMicros(): Promise<number | undefined>
  close(): void
}

/** Connects, and lifts the bound on memory, which is one for tests. Throws where nobody answers. */
export async function connectDirectly(url: string): Promise<DirectRedis> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
  // Told to whoever waits for a command, too.
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

/** Id, Unix time, microseconds, the command, and more. */
type SlowEntry = readonly [unknown, unknown, number, readonly string[], ...unknown[]]

/** The longest of the entries that are scripts, microseconds; undefined: none is. */
export function longestScript(entries: readonly SlowEntry[]): number | undefined {
  const micros = entries
    .filter(([, , , [name = '']]) => SCRIPTS.some((script) => script === name.toLowerCase()))
    .map(([, , each]) => each)
  return micros.length === 0 ? undefined : Math.max(...micros)
}

/** Reads what `INFO commandstats cpu` answers. */
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
