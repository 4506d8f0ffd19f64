/** The client for a Redis over RESP, on Node: all connections of a process share one socket. */
import { Misconfigured } from '../../../errors.ts'
import {
  boundedCalls,
  DEFAULT_REDIS_TIMEOUT_MS,
  type RedisCallOptions,
  type SendCall,
} from '../../../redis/bounded-calls.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { createKeys, DEFAULT_KEY_PREFIX, type RedisKeys } from '../../../redis/keys.ts'
import { parseRedisUrl, type RedisTarget } from '../environment/redis-url.ts'
import { connectCluster } from './cluster/connect-cluster.ts'
import { createFencedMaster } from './sentinel/fenced-master.ts'
import { acknowledgedSend } from './socket/acknowledged.ts'
import { classifyFault, findMistake } from './socket/faults.ts'
import {
  DEFAULT_FENCE_MS,
  type RespClient,
  type RespOptions,
  redisMistake,
} from './socket/resp-client.ts'
import { createRespSocket, type RespSocket } from './socket/resp-socket.ts'

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
  const { lanes, master } = target
  if (lanes !== undefined) return connectCluster({ ...target, lanes }, options)
  return master === undefined ? connectServer(target, options) : connectMaster(target, options)
}

/** The master behind Sentinels. */
function connectMaster(
  target: RedisTarget,
  {
    keyPrefix = DEFAULT_KEY_PREFIX,
    timeoutMs = DEFAULT_REDIS_TIMEOUT_MS,
    fenceMs = DEFAULT_FENCE_MS,
    replicasAcked = 0,
  }: Omit<RespOptions, 'url'>,
): RespClient {
  const silenceMs = Math.max(timeoutMs, MIN_SILENCE_MS)
  const master = createFencedMaster({ target, silenceMs, fenceMs })
  const keys = createKeys(keyPrefix)
  const requests = through(master.send)
  const writers = through(master.write)

  return {
    connect(calls) {
      master.start()
      return connectionOver({ keys, replicasAcked, calls, requests, writers })
    },
    async check() {
      try {
        await master.proved()
      } catch (cause) {
        const mistake = findMistake(cause)
        if (mistake !== undefined)
          throw new Misconfigured('The environment', [redisMistake(mistake)])
      }
      const downAfterMs = (await master.downAfterMs()) ?? Number.POSITIVE_INFINITY
      if (fenceMs + timeoutMs < downAfterMs) return []
      const mistake =
        `${fenceMs} ms and the deadline of ${timeoutMs} ms must be less than down-after-milliseconds, which is ${downAfterMs} ms: ` +
        'a replaced master could be believed; set a smaller value, or a longer time at the Sentinels'
      throw new Misconfigured('The environment', [redisMistake(mistake, 'REDIS_FENCE_MS')])
    },
    masters: () => new Map(),
    promotions: () => 0,
    problems: () => [],
    pendingFacts: async () => undefined,
    close: master.close,
  }
}

interface ConnectionParts {
  readonly keys: RedisKeys
  readonly replicasAcked: number
  readonly calls: RedisCallOptions
  readonly requests: SendCall
  /** For calls that wait for replicas. */
  readonly writers: SendCall
}

const connectionOver = ({
  keys,
  replicasAcked,
  calls,
  requests,
  writers,
}: ConnectionParts): RedisConnection => ({
  keys,
  keyLocking: false,
  replicasAcked,
  send: acknowledgedSend(
    boundedCalls(calls, requests, classifyFault),
    boundedCalls(calls, writers, classifyFault),
    calls.timeoutMs ?? DEFAULT_REDIS_TIMEOUT_MS,
  ),
})

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
    connect: (calls) =>
      connectionOver({ keys, replicasAcked, calls, requests: send, writers: write }),
    async check() {
      try {
        await socket.open()
        return []
      } catch (cause) {
        const mistake = findMistake(cause)
        if (mistake === undefined) return [unanswered(cause)]
        throw new Misconfigured('The environment', [redisMistake(mistake)])
      }
    },
    masters: () => new Map(),
    promotions: () => 0,
    problems: () => [],
    pendingFacts: async () => undefined,
    close() {
      socket.close()
      writers.close()
    },
  }
}

/** A gateway that starts before its Redis is no mistake, and serves once the Redis answers. */
const unanswered = (cause: unknown): string =>
  `REDIS_URL: the Redis does not answer (${classifyFault(cause)}); requests that need it are refused with 503 until it does`

const sendThrough = (socket: RespSocket): SendCall =>
  through((commands, deadline, { over }) => socket.send(commands, deadline, over))

type Send = (
  commands: Parameters<SendCall>[0],
  deadline: Parameters<SendCall>[1],
  options: Parameters<SendCall>[2],
) => Promise<unknown>

/** Sends a call a second time if the socket was lost before the reply, unless it says `once`. */
const through =
  (send: Send): SendCall =>
  (commands, deadline, options) =>
    new Promise((resolve, reject) => {
      const { once, over } = options
      deadline.onExpiry = reject
      const isLast = once || over?.socket !== undefined
      send(commands, deadline, options).then(resolve, (cause) => {
        if (isLast || deadline.isExpired || classifyFault(cause) !== 'unreachable') reject(cause)
        else {
          if (over !== undefined) over.socket = undefined
          send(commands, deadline, options).then(resolve, reject)
        }
      })
    })
