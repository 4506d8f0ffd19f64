/** Sends commands through a client of the app: ioredis or node-redis. */
import type { Fault } from '../../../problems/reasons.ts'
import type { SendCall } from '../../../redis/bounded-calls.ts'
import type { RedisCommand, RedisReply } from '../../../redis/connection.ts'
import { isForbiddenEcho } from './socket/reply-marks.ts'

/** The part of a client of ioredis that is used. */
export interface IoredisClient {
  readonly isCluster?: boolean
  readonly status: string
  readonly options?: object
  disconnect?(reconnect?: boolean): void
  pipeline(): {
    call(name: string, ...parameters: (string | number)[]): unknown
    exec(): Promise<[error: Error | null, result: unknown][] | null>
  }
}

/** The part of a client of node-redis that is used. */
export interface NodeRedisClient {
  readonly isReady: boolean
  readonly options?: object | undefined
  sendCommand(command: string[]): Promise<unknown>
  destroy?(): void
  connect?(): Promise<unknown>
}

export type ExistingClient = IoredisClient | NodeRedisClient

interface Sender {
  readonly send: SendCall
  readonly classifyFault: (cause: unknown) => Fault
}

interface Settings {
  readonly keyPrefix?: string
  readonly enableOfflineQueue?: boolean
  readonly autoResendUnfulfilledCommands?: boolean
  readonly readOnly?: boolean
  readonly role?: string
  readonly disableOfflineQueue?: boolean
  readonly readonly?: boolean
  readonly RESP?: number
}

const CLUSTER = 'a cluster client sends each command to another server; use a client of one server'
const READ_ONLY = 'the client may read from a replica, which misses revocations; use the master'

const isIoredis = (client: ExistingClient): client is IoredisClient =>
  typeof (client as Partial<IoredisClient>).pipeline === 'function'

/** Returns how commands are sent. Throws what `fail` makes of the reason why the client cannot be used. */
export function sendThrough(client: ExistingClient, fail: (why: string) => Error): Sender {
  const why = isIoredis(client) ? mistakeInIoredis(client) : mistakeInNodeRedis(client)
  if (why !== undefined) throw fail(why)
  let renewedMs = Number.NEGATIVE_INFINITY
  const exchange = isIoredis(client) ? throughIoredis(client) : throughNodeRedis(client)
  return {
    send: (commands, deadline) =>
      new Promise((resolve, reject) => {
        deadline.onExpiry = reject
        exchangeMarked(commands).then(resolve, reject)
      }),
    classifyFault: (cause) => {
      if (cause instanceof Misplaced) return 'malformed'
      return isExpiry(cause) ? 'timeout' : 'unreachable'
    },
  }

  /** Sends a mark behind the commands, as `reply-marks.ts` does. After another reply, the client gets another socket. */
  async function exchangeMarked(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
    const text = crypto.randomUUID()
    const replies = await exchange([...commands, ['ECHO', text]])
    const { result, error = '' } = replies[commands.length] ?? {}
    if (result === text || isForbiddenEcho(error)) return replies.slice(0, commands.length)
    if (error.startsWith('BUSY ')) return commands.map(() => ({ error }))
    const nowMs = performance.now()
    if (nowMs - renewedMs > RENEWAL_PAUSE_MS) {
      renewedMs = nowMs
      renewSocket(client)
    }
    throw new Misplaced('a reply is that of another command')
  }
}

/** All calls of a socket find the same fault. */
const RENEWAL_PAUSE_MS = 250

class Misplaced extends Error {}

function renewSocket(client: ExistingClient): void {
  if (isIoredis(client)) client.disconnect?.(true)
  else {
    client.destroy?.()
    client.connect?.().catch(() => {})
  }
}

function mistakeInIoredis({ isCluster, options = {} }: IoredisClient): string | undefined {
  const settings: Settings = options
  if (isCluster) return CLUSTER
  if (settings.keyPrefix)
    return 'the client has a keyPrefix, so the tools of operators would use other keys; use the option keyPrefix of redis()'
  if (settings.readOnly || settings.role === 'slave') return READ_ONLY
  if (settings.enableOfflineQueue !== false)
    return 'the client keeps commands while Redis is down, so requests would hang; set enableOfflineQueue: false'
  if (settings.autoResendUnfulfilledCommands !== false)
    return 'the client sends commands again after a lost connection, which counts a request twice; set autoResendUnfulfilledCommands: false'
  return undefined
}

function mistakeInNodeRedis(client: Partial<NodeRedisClient>): string | undefined {
  if (typeof client.sendCommand !== 'function')
    return 'must be a URL such as redis://127.0.0.1:6379, or a client of ioredis or node-redis'
  if (typeof client.isReady !== 'boolean') return CLUSTER
  const settings: Settings = client.options ?? {}
  if (settings.readonly) return READ_ONLY
  if (settings.RESP === 3) return 'the client speaks RESP3, which has other replies; use RESP: 2'
  if (settings.disableOfflineQueue !== true)
    return 'the client keeps commands while Redis is down, so requests would hang; set disableOfflineQueue: true'
  return undefined
}

type Exchange = (commands: readonly RedisCommand[]) => Promise<readonly RedisReply[]>

const throughIoredis =
  (client: IoredisClient): Exchange =>
  async (commands) => {
    if (client.status !== 'ready') throw new Error('the client is not connected')
    const pipeline = client.pipeline()
    for (const [name = '', ...parameters] of commands) pipeline.call(String(name), ...parameters)
    const replies = await pipeline.exec()
    return (replies ?? []).map(([error, result]) => {
      if (error === null) return { result: textOf(result) }
      if (error.name !== 'ReplyError') throw error
      return { error: error.message }
    })
  }

/** All commands of a turn are written together. */
const throughNodeRedis =
  (client: NodeRedisClient): Exchange =>
  async (commands) => {
    if (!client.isReady) throw new Error('the client is not connected')
    const sent = commands.map(async (command): Promise<RedisReply> => {
      try {
        return { result: textOf(await client.sendCommand(command.map(String))) }
      } catch (error) {
        if (!isErrorReply(error)) throw error
        return { error: error.message }
      }
    })
    return Promise.all(sent)
  }

/** Commands may be of a client that returns bytes. */
const textOf = (result: unknown): unknown => {
  if (result instanceof Uint8Array) return new TextDecoder().decode(result)
  return Array.isArray(result) ? result.map(textOf) : result
}

/** The class of node-redis for a reply of Redis, also of another copy of the package. */
function isErrorReply(error: unknown): error is Error {
  for (let of: unknown = error; of instanceof Error; of = Object.getPrototypeOf(of))
    if (of.constructor.name === 'ErrorReply') return true
  return false
}

const isExpiry = (cause: unknown): boolean =>
  cause instanceof Error && cause.name === 'TimeoutError'
