/** The Redis of the recorded run: one that is killed and started again, with what it had or without. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { startRedis } from '../../dev/redis.ts'
import { HOST } from '../../dev/start/settings.ts'
import { freePort } from '../free-port.ts'

const START_TIMEOUT_MS = 10_000
const PROBE_INTERVAL_MS = 20
/** Where Redis keeps its log of writes, below its directory. */
const LOG_FOLDER = 'appendonlydir'

export interface MortalRedis {
  readonly url: string
  readonly kind: string
  /** Undefined where Redis is embedded, or not ours: it cannot be killed. */
  readonly kill: (() => Promise<void>) | undefined
  /** Starts it again. Without its data: all of it is gone. Resolves when it answers. */
  start(keepsData: boolean): Promise<void>
  close(): Promise<void>
}

/**
 * Starts `redis-server` with a log of its writes in `directory`, or where there is none what
 * `startRedis` finds. Each write is handed to the kernel before it is answered (`appendfsync no`), so
 * whoever kills the process loses nothing that was acknowledged. A machine that loses power would.
 */
export async function startMortalRedis(directory: string): Promise<MortalRedis> {
  if (process.env.REDIS_URL || spawnSync('redis-server', ['--version']).status !== 0) {
    const redis = await startRedis()
    return { ...redis, kill: undefined, start: async () => {} }
  }
  const port = await freePort()
  const url = `redis://${HOST}:${port}`
  let child: ChildProcess | undefined

  async function kill(): Promise<void> {
    if (child === undefined) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
    child = undefined
  }
  async function start(keepsData: boolean): Promise<void> {
    if (!keepsData) rmSync(join(directory, LOG_FOLDER), { recursive: true, force: true })
    child = spawn(
      'redis-server',
      [
        ...['--port', String(port), '--bind', HOST, '--dir', directory, '--save', ''],
        ...['--appendonly', 'yes', '--appendfsync', 'no', '--auto-aof-rewrite-percentage', '0'],
      ],
      { stdio: 'ignore' },
    )
    await answers(url)
  }
  process.once('exit', () => child?.kill('SIGKILL'))
  await start(false)
  return { url, kind: 'server', kill, start, close: kill }
}

/** Throws an `Error` of one line where nothing answers in time. */
async function answers(url: string): Promise<void> {
  const redis = new Redis(url, { retryStrategy: () => PROBE_INTERVAL_MS, disableClientInfo: true })
  redis.on('error', () => {})
  try {
    const isUp = redis.ping().then(() => true)
    const isLate = sleep(START_TIMEOUT_MS, false, { ref: false })
    if (!(await Promise.race([isUp, isLate]))) throw new Error('redis-server does not answer')
  } finally {
    redis.disconnect()
  }
}
