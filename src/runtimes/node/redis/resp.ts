/** The client for a Redis over RESP, on Node: all connections of a process share one socket. */
import { Misconfigured } from '../../../errors.ts'
import {
  boundedCalls,
  DEFAULT_REDIS_TIMEOUT_MS,
  type SendCall,
} from '../../../redis/bounded-calls.ts'
import { createKeys, DEFAULT_KEY_PREFIX } from '../../../redis/keys.ts'
import { parseRedisUrl, type RedisTarget } from '../schemas/redis-url.ts'
import { connectCluster } from './cluster/connect-cluster.ts'
import { acknowledgedSend } from './socket/acknowledged.ts'
import { type RespClient, type RespOptions, redisMistake } from './socket/resp-client.ts'
import {
  classifyFault,
  createRespSocket,
  findMistake,
  type RespSocket,
} from './socket/resp-socket.ts'

export type { RespClient, RespOptions }

/** For deadlines that are shorter: a socket is replaced after so long without a reply to any call. */
const MIN_SILENCE_MS = 2_000

/**
 * Creates the client. It connects when the first call needs it. A call without a response is sent a
 * second time, on another socket, unless it says `once`. Throws a `TypeError` for an invalid URL.
 */
export function connectResp({ url, ...options }: RespOptions): RespClient {
  const target = parseRedisUrl(url)
  if (target === undefined) throw new TypeError('invalid URL of Redis')
  const { lanes } = target
  return lanes === undefined
    ? connectServer(target, options)
    : connectCluster({ ...target, lanes }, options)
}

function connectServer(
  target: RedisTarget,
  {
    keyPrefix = DEFAULT_KEY_PREFIX,
    timeoutMs = DEFAULT_REDIS_TIMEOUT_MS,
    replicasAcked = 0,
  }: Omit<RespOptions, 'url'>,
): RespClient {
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
      replicasAcked,
      send: acknowledgedSend(
        boundedCalls(calls, send, classifyFault),
        boundedCalls(calls, write, classifyFault),
        calls.timeoutMs ?? DEFAULT_REDIS_TIMEOUT_MS,
      ),
    }),
    async check() {
      try {
        await socket.open()
        return []
      } catch (cause) {
        const mistake = findMistake(cause)
        if (mistake === undefined) return []
        throw new Misconfigured('The environment', [redisMistake(mistake)])
      }
    },
    masters: () => new Map(),
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
