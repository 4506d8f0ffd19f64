/**
 * Selects a Redis for local use, and starts it if necessary: a running one (`REDIS_URL`), a
 * `redis-server` from the PATH (or the program that `REDIS_SERVER` names), or the embedded `js-redis-server`. A Redis that is started here
 * listens only on loopback, stores nothing on disk, and ends with `close()` or with this process.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { Redis } from 'ioredis'
import { freePort } from './free-port.ts'

/** The program of tests and local use. The variable names that of another version, or of Valkey. */
export const REDIS_SERVER = process.env.REDIS_SERVER || 'redis-server'

const HOST = '127.0.0.1'
const START_TIMEOUT_MS = 5_000
const PROBE_INTERVAL_MS = 20
const STOP_TIMEOUT_MS = 2_000
/** Enough for tests and benchmarks. More memory would indicate a leak. */
const MAX_MEMORY = '512mb'

export interface StartRedisOptions {
  /**
   * A running Redis to use instead of starting one. Default: the variable `REDIS_URL`, if `prefer`
   * is `auto`.
   */
  readonly url?: string
  /** `auto`: `redis-server` if it is installed, or else embedded. Ignored if there is a `url`. */
  readonly prefer?: 'auto' | 'server' | 'embedded'
}

/** A running Redis. */
export interface RedisHandle {
  /** `redis://...`. A given URL may contain credentials. */
  readonly url: string
  readonly kind: 'external' | 'server' | 'embedded'
  /**
   * Resolves with the reason if a Redis that was started here ends before it is closed. Otherwise
   * never settles.
   */
  readonly died: Promise<string>
  /** Stops a Redis that was started here. Does not stop an external one. */
  close(): Promise<void>
}

/**
 * Starts or connects to a Redis. Throws an `Error` of one line if it does not respond or cannot
 * start.
 */
export async function startRedis(options: StartRedisOptions = {}): Promise<RedisHandle> {
  const { prefer = 'auto' } = options
  const url = options.url ?? (prefer === 'auto' ? process.env.REDIS_URL || undefined : undefined)
  if (url !== undefined) return external(url)
  if (prefer === 'embedded') return embedded()
  try {
    return await server()
  } catch (error) {
    if (prefer === 'server') throw error
    return embedded()
  }
}

const NEVER = new Promise<never>(() => {})

async function external(url: string): Promise<RedisHandle> {
  if (!/^rediss?:\/\/[^/]/.test(url) || !URL.canParse(url)) {
    throw new Error('the Redis URL must look like redis://host:port')
  }
  const failure = await ping(url)
  if (failure !== undefined) {
    throw new Error(`no response from Redis at ${new URL(url).host} (${failure})`)
  }
  return { url, kind: 'external', died: NEVER, close: async () => {} }
}

/**
 * Runs `redis-server`, and ends it when the standard input of this shell ends, which also happens
 * if this process is killed. Exits with the code of `redis-server`, or 127 if it is not installed.
 */
const RUN_WHILE_WATCHED = `
  exec 3<&0
  "\${REDIS_SERVER:-redis-server}" "$@" </dev/null & server=$!
  (read -r _ <&3; kill "$server") & watcher=$!
  wait "$server"; code=$?
  kill "$watcher"
  exit $code`

async function server(): Promise<RedisHandle> {
  const port = await freePort()
  const child = spawn(
    'sh',
    [
      ...['-c', RUN_WHILE_WATCHED, 'sh'],
      ...['--port', String(port), '--bind', HOST, '--save', '', '--appendonly', 'no'],
      // Otherwise it reads what another server has saved there as `dump.rdb`.
      ...['--dir', tmpdir(), '--dbfilename', `portcullis-${port}.rdb`],
      ...['--maxmemory', MAX_MEMORY, '--daemonize', 'no'],
    ],
    // A separate process group can be killed as a whole, and does not receive Ctrl-C from the
    // terminal.
    { stdio: ['pipe', 'ignore', 'ignore'], detached: true },
  )
  child.stdin.on('error', () => {})
  let ended: string | undefined
  let isClosing = false
  child.once('error', (error) => {
    ended = error.message
  })
  const died = new Promise<string>((resolve) => {
    child.once('exit', (code) => {
      ended =
        code === 127 ? `${REDIS_SERVER} is not on the PATH` : `redis-server ended with code ${code}`
      if (!isClosing) resolve(ended)
    })
  })

  async function close(): Promise<void> {
    isClosing = true
    if (ended !== undefined) return
    const exited = once(child, 'exit')
    child.stdin.end()
    const timer = setTimeout(() => killGroup(child), STOP_TIMEOUT_MS)
    await exited
    clearTimeout(timer)
  }

  const url = `redis://${HOST}:${port}`
  const deadline = Date.now() + START_TIMEOUT_MS
  while ((await ping(url)) !== undefined) {
    if (ended === undefined && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, PROBE_INTERVAL_MS))
      continue
    }
    const reason = ended ?? `redis-server did not answer within ${START_TIMEOUT_MS} ms`
    await close()
    throw new Error(reason)
  }
  return { url, kind: 'server', died, close }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}

async function embedded(): Promise<RedisHandle> {
  // Loaded only if it is used, because it needs Node 22 and a package that a project may not have.
  const { startEmbeddedRedis } = await import('./embedded-redis.ts').catch((cause) => {
    if (cause.code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new Error(
      'there is no Redis: set REDIS_URL, or install redis-server, or js-redis-server from npm',
      { cause },
    )
  })
  return { ...(await startEmbeddedRedis()), kind: 'embedded', died: NEVER }
}

/** Returns undefined if the Redis at `url` responds to PING, or else a short reason. */
async function ping(url: string): Promise<string | undefined> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: START_TIMEOUT_MS,
    commandTimeout: START_TIMEOUT_MS,
    retryStrategy: () => null,
    disableClientInfo: true,
  })
  let reason: string | undefined
  redis.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    reason = code ?? message
  })
  try {
    await redis.connect()
    await redis.ping()
    return undefined
  } catch (error) {
    return reason ?? (error as Error).message
  } finally {
    redis.disconnect()
  }
}
