/** A Redis that can be killed and restarted with or without its data. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { freePort } from '../../dev/free-port.ts'
import { REDIS_SERVER, startRedis } from '../../dev/redis.ts'
import { HOST } from '../../dev/start/settings.ts'

const START_TIMEOUT_MS = 10_000
const PROBE_INTERVAL_MS = 20
/** Directory of Redis' append-only log, below its directory. */
const LOG_FOLDER = 'appendonlydir'

export interface MortalRedis {
  readonly url: string
  readonly kind: string
  /** Kills Redis. Undefined if Redis is embedded or not owned by the run. */
  readonly kill: (() => Promise<void>) | undefined
  /** Restarts Redis. With `keepsData` false, all data is lost. Resolves when it responds. */
  start(keepsData: boolean): Promise<void>
  close(): Promise<void>
}

/**
 * Starts `redis-server` with an append-only log in `directory`. Without the program, starts what
 * `startRedis` finds. Each write is passed to the kernel before its reply (`appendfsync no`), so a
 * killed process loses no acknowledged write. A power failure would.
 */
export async function startMortalRedis(directory: string): Promise<MortalRedis> {
  if (process.env.REDIS_URL || spawnSync(REDIS_SERVER, ['--version']).status !== 0) {
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
      REDIS_SERVER,
      [
        ...['--port', String(port), '--bind', HOST, '--dir', directory, '--save', ''],
        ...['--appendonly', 'yes', '--appendfsync', 'no', '--auto-aof-rewrite-percentage', '0'],
      ],
      { stdio: 'ignore' },
    )
    await untilResponding(url)
  }
  process.once('exit', () => child?.kill('SIGKILL'))
  await start(false)
  return { url, kind: 'server', kill, start, close: kill }
}

/** Waits for a reply. Throws an `Error` of one line after the timeout. */
async function untilResponding(url: string): Promise<void> {
  const redis = new Redis(url, { retryStrategy: () => PROBE_INTERVAL_MS, disableClientInfo: true })
  redis.on('error', () => {})
  try {
    const isUp = redis.ping().then(() => true)
    const isLate = sleep(START_TIMEOUT_MS, false, { ref: false })
    if (!(await Promise.race([isUp, isLate]))) throw new Error('redis-server does not respond')
  } finally {
    redis.disconnect()
  }
}
