/** A master behind its fence, with one socket for each kind of call. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Deadline } from '../../../../isolate/deadline.ts'
import { BUCKETS_MS } from '../../../../observability/metrics/catalogue.ts'
import type { RedisCommand, RedisReply, SendOptions } from '../../../../redis/connection.ts'
import type { RedisTarget } from '../../environment/redis-url.ts'
import { joinWaits } from '../socket/joined-waits.ts'
import type { ServerState } from '../socket/resp-client.ts'
import { createRespSocket, type RespSocket, type RespSocketOptions } from '../socket/resp-socket.ts'
import { createFence, SilentMaster } from './fence.ts'

/** A master that its users have not heard for this part of the fence gets a `PING`. */
const PINGS_PER_FENCE = 4
const PING: readonly RedisCommand[] = [['PING']]
const NEVER_EXPIRES = { isExpired: false }

export interface FencedServerOptions extends Pick<RespSocketOptions, 'accept' | 'certificateName'> {
  /** Or a function that returns it, for each new socket. */
  readonly target: RedisTarget | (() => RedisTarget)
  /** A socket is replaced after so long without a reply to any call. */
  readonly silenceMs: number
  /** See `Fence`. `Infinity`: the server is believed after every silence, and gets no `PING`. */
  readonly fenceMs: number
  /** Runs before each proof. Default: nothing. */
  readonly prepare?: (server: FencedServer) => Promise<void>
  /** Throws if others name another master. */
  readonly confirm: (server: FencedServer) => Promise<void>
}

type Within = Pick<Deadline, 'isExpired'>

export interface FencedServer {
  /**
   * Sends the commands of a request. Waits for the proof of a server that is not believed. Throws
   * `SilentMaster` for replies after a silence: the commands may have run. A call over the socket of an
   * earlier one is sent at once, and its replies are used.
   */
  send(
    commands: readonly RedisCommand[],
    deadline: Within,
    options?: SendOptions,
  ): Promise<readonly RedisReply[]>
  /** As `send`, over the socket of calls that wait for replicas. */
  write: FencedServer['send']
  /** Calls `send` after `believed`. A call that fails before, or whose deadline passes, counts as doubted. */
  sendWhen<Result>(
    believed: Promise<void>,
    deadline: Within,
    send: () => Promise<Result>,
  ): Promise<Result>
  /** Sends commands over the socket of the fence. Their replies are never those of a decision. */
  query(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]>
  /** See `Fence.proved`. */
  proved(): Promise<void>
  /** See `Fence.isOpen`. */
  isBelieved(): boolean
  /** See `Fence.close`. */
  disbelieve(): void
  /** See `Fence.failure`. */
  failure(): unknown
  /** Sends `PING` if the server is silent, and begins a proof if it is not believed. Throws never. */
  tick(): void
  /** Drops all sockets, so that the next calls find the server anew. */
  reset(cause: Error): void
  state(): ServerState
  close(): void
}

/**
 * Whether a call goes to the server of an earlier call, or nowhere. It needs no proof: it undoes what that
 * server did. If another one has taken its place, its data is discarded. See docs/decisions/0118.
 */
const isOfEarlier = (over: SendOptions['over']): boolean => over?.socket !== undefined

/** Returns how often `tick` must be called. */
export const tickMsOf = (fenceMs: number): number => fenceMs / PINGS_PER_FENCE

/** Creates the server. It connects when the first call needs it. */
export function createFencedServer(options: FencedServerOptions): FencedServer {
  const { target, silenceMs, fenceMs, prepare, confirm, ...socketOptions } = options
  const now = () => performance.now()
  // Another server, or an empty one, may be at the address: no socket may outlive another one.
  const onLost = () => {
    fence.close()
    server.reset(new Error('the server was lost'))
  }
  const requests = createRespSocket(target, silenceMs, { ...socketOptions, onLost })
  const writers = createRespSocket(target, silenceMs, { ...socketOptions, onLost })
  // Of its own, because a reply to PING behind a thousand requests comes too late to prove anything.
  const pings = createRespSocket(target, silenceMs, { ...socketOptions, onLost })
  let answered = 0
  let failed = 0
  let doubted = 0
  let sumMs = 0
  const durations = Array<number>(BUCKETS_MS.length + 1).fill(0)
  let isPinging = false

  const query: FencedServer['query'] = (commands) => pings.send(commands, NEVER_EXPIRES)

  const fence = createFence({
    fenceMs,
    ping: () => query(PING),
    ...(prepare && { prepare: () => prepare(server) }),
    confirm: () => confirm(server),
    now,
    sleep: (ms) => sleep(ms, undefined, { ref: false }),
  })

  function countFailure(cause: unknown): never {
    failed += 1
    throw cause
  }

  function countAnswer(ms: number): void {
    let bucket = 0
    while (bucket < BUCKETS_MS.length && ms > (BUCKETS_MS[bucket] ?? 0)) bucket += 1
    durations[bucket] = (durations[bucket] ?? 0) + 1
    sumMs += ms
    answered += 1
  }

  /** Not an async function: there are thousands of calls a second. */
  function exchange(
    socket: RespSocket,
    commands: readonly RedisCommand[],
    deadline: Within,
    over: SendOptions['over'],
  ): Promise<readonly RedisReply[]> {
    const isBound = isOfEarlier(over)
    const sentMs = now()
    return socket.send(commands, deadline, over).then((replies) => {
      const heardMs = now()
      if (!fence.heard(sentMs, heardMs) && !isBound) {
        doubted += 1
        throw new SilentMaster()
      }
      countAnswer(heardMs - sentMs)
      return replies
    }, countFailure)
  }

  const through =
    (socket: RespSocket): FencedServer['send'] =>
    (commands, deadline, options) =>
      fence.isOpen() || isOfEarlier(options?.over)
        ? exchange(socket, commands, deadline, options?.over)
        : sendWhen(fence.proved(), deadline, () =>
            exchange(socket, commands, deadline, options?.over),
          )

  const sendWhen: FencedServer['sendWhen'] = (believed, deadline, send) =>
    believed
      .then(() => {
        if (deadline.isExpired) throw new Error('the deadline has passed')
      })
      .catch((cause) => {
        doubted += 1
        throw cause
      })
      .then(send)

  async function ping(): Promise<void> {
    if (isPinging) return
    isPinging = true
    const sentMs = now()
    try {
      await query(PING)
      fence.heard(sentMs)
    } catch {
      // The loss of the socket has closed the fence.
    } finally {
      isPinging = false
    }
  }

  const server: FencedServer = {
    send: through(requests),
    write: joinWaits(through(writers)),
    query,
    sendWhen,
    proved: fence.proved,
    isBelieved: fence.isOpen,
    disbelieve: fence.close,
    failure: fence.failure,
    tick() {
      if (!fence.isOpen()) fence.proved().catch(() => {})
      else if (fence.silentMs() >= tickMsOf(fenceMs)) void ping()
    },
    reset(cause) {
      for (const socket of [pings, requests, writers]) socket.drop(cause)
    },
    state: () => ({
      isBelieved: fence.isOpen(),
      ...{ answered, failed, doubted, fenced: fence.closings(), durations, sumMs },
    }),
    close() {
      for (const socket of [pings, requests, writers]) socket.close()
    },
  }
  return server
}
