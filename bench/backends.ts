/** Starts the dependencies of the measured gateway: an origin, a queue, and Redis. */
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'

/** Body of every response of the origin. */
export const ORIGIN_BODY = '{"items":[{"id":"0190a6b4-0000-7000-8000-000000000001"}]}'

const REST_TOKEN_BYTES = 32
const STOP_TIMEOUT_MS = 3_000

/** Counts since the start. */
export interface OriginCounts {
  readonly requests: number
  /** Requests with `X-Auth-Subject`. */
  readonly identified: number
  /** Requests with `X-Auth-Assertion`. */
  readonly asserted: number
  /** Messages of the audit queue; counted only if the queue is bound to this process. */
  readonly auditEvents: number
}

export interface RedisCounts {
  /**
   * HTTP calls to the REST server, without those after responses: metrics, and audit events that
   * were not queued.
   */
  readonly calls: number
}

export type Counts = OriginCounts & RedisCounts

export interface Backends {
  readonly originUrl: string
  readonly redis: {
    readonly url: string
    readonly token: string
    readonly kind: string
    /** URL of Redis itself, without the REST server: `redis://...`. */
    readonly directUrl: string
    /** Process of the REST server. Redis is this process or a child of it. */
    readonly pid: number
  }
  counts(): Promise<Counts>
  close(): Promise<void>
}

/** Starts both processes. Throws an `Error` of one line if one of them does not start. */
export async function startBackends(): Promise<Backends> {
  const token = randomBytes(REST_TOKEN_BYTES).toString('base64url')
  const origin = spawnBackend('origin.ts')
  const redisRest = spawnBackend('redis-rest.ts', { REST_TOKEN: token })
  async function close(): Promise<void> {
    await Promise.all([stop(origin), stop(redisRest)])
  }
  try {
    const [{ url: originUrl }, redis] = await Promise.all([
      answerOf<{ url: string }>(origin),
      answerOf<{ url: string; kind: string; directUrl: string }>(redisRest),
    ])
    return {
      originUrl,
      redis: { ...redis, token, pid: redisRest.pid as number },
      async counts() {
        const answers = Promise.all([
          answerOf<OriginCounts>(origin),
          answerOf<RedisCounts>(redisRest),
        ])
        origin.send('counts')
        redisRest.send('counts')
        return Object.assign({}, ...(await answers)) as Counts
      },
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Returns the differences between two counts. */
export function countsBetween(before: Counts, after: Counts): Counts {
  return {
    requests: after.requests - before.requests,
    identified: after.identified - before.identified,
    asserted: after.asserted - before.asserted,
    auditEvents: after.auditEvents - before.auditEvents,
    calls: after.calls - before.calls,
  }
}

function spawnBackend(file: string, env: Record<string, string> = {}): ChildProcess {
  return fork(join(import.meta.dirname, 'backends', file), {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
}

/** Returns the next message of a process. */
async function answerOf<Answer>(child: ChildProcess): Promise<Answer> {
  const ended = new AbortController()
  const onExit = () => ended.abort()
  child.once('exit', onExit)
  try {
    const [answer] = await once(child, 'message', { signal: ended.signal })
    return answer as Answer
  } catch {
    throw new Error('a process behind the gateway has ended by itself')
  } finally {
    child.off('exit', onExit)
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  if (child.connected) child.disconnect()
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  await exited
  clearTimeout(timer)
}
