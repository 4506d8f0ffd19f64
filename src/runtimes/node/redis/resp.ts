/** The client for a Redis over RESP, on Node: all connections of a process share one socket. */
import { Misconfigured } from '../../../errors.ts'
import { mistakeAt } from '../../../problems/mistake.ts'
import {
  boundedCalls,
  DEFAULT_REDIS_TIMEOUT_MS,
  type RedisCallOptions,
  type SendCall,
} from '../../../redis/bounded-calls.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { createKeys, DEFAULT_KEY_PREFIX } from '../../../redis/keys.ts'
import { parseRedisUrl } from '../schemas/redis-url.ts'
import { acknowledgedSend } from './socket/acknowledged.ts'
import {
  classifyFault,
  createRespSocket,
  findMistake,
  type RespSocket,
} from './socket/resp-socket.ts'

export interface RespOptions {
  /** See `parseRedisUrl`. */
  readonly url: string
  /** The beginning of all names of keys. Default: `DEFAULT_KEY_PREFIX`. */
  readonly keyPrefix?: string | undefined
  /** The deadline of calls for requests, in milliseconds. Default 250. */
  readonly timeoutMs?: number | undefined
}

export interface RespClient {
  /** Creates a connection with its own deadline, circuit breaker and observer. */
  connect(options: RedisCallOptions): RedisConnection
  /**
   * Throws `Misconfigured` if the gateway cannot use this Redis: a cluster, a replica, an old version,
   * a wrong password or database. Returns if Redis does not respond, because that may change.
   */
  check(): Promise<void>
  /** Closes the socket. Calls in progress fail, as do later calls. */
  close(): void
}

/** For deadlines that are shorter: a socket is replaced after so long without a reply to any call. */
const MIN_SILENCE_MS = 2_000

/**
 * Creates the client. It connects when the first call needs it. A call without a response is sent a
 * second time, on another socket, unless it says `once`. Throws a `TypeError` for an invalid URL.
 */
export function connectResp({
  url,
  keyPrefix = DEFAULT_KEY_PREFIX,
  timeoutMs = DEFAULT_REDIS_TIMEOUT_MS,
}: RespOptions): RespClient {
  const target = parseRedisUrl(url)
  if (target === undefined) throw new TypeError('invalid URL of Redis')
  const silenceMs = Math.max(timeoutMs, MIN_SILENCE_MS)
  const socket = createRespSocket(target, silenceMs)
  const keys = createKeys(keyPrefix)

  const send = sendThrough(socket)
  // It opens with the first call that waits for replicas.
  const writers = createRespSocket(target, silenceMs)
  const write = sendThrough(writers)

  return {
    connect: (calls) => ({
      keys,
      keyLocking: false,
      send: acknowledgedSend(
        boundedCalls(calls, send, classifyFault),
        boundedCalls(calls, write, classifyFault),
        calls.timeoutMs ?? DEFAULT_REDIS_TIMEOUT_MS,
      ),
    }),
    async check() {
      try {
        await socket.open()
      } catch (cause) {
        const mistake = findMistake(cause)
        if (mistake !== undefined)
          throw new Misconfigured('The environment', [
            mistakeAt('invalid_value', ['REDIS_URL'], mistake),
          ])
      }
    },
    close() {
      socket.close()
      writers.close()
    },
  }
}

/** Sends a call a second time if the socket was lost before the reply, unless it says `once`. */
const sendThrough =
  (socket: RespSocket): SendCall =>
  (commands, deadline, { once, over }) =>
    new Promise((resolve, reject) => {
      deadline.onExpiry = reject
      const isLast = once || over?.socket !== undefined
      socket.send(commands, deadline, over).then(resolve, (cause) => {
        if (isLast || deadline.isExpired || classifyFault(cause) !== 'unreachable') reject(cause)
        else {
          if (over !== undefined) over.socket = undefined
          socket.send(commands, deadline, over).then(resolve, reject)
        }
      })
    })
