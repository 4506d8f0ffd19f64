/** The socket to Redis over RESP. A call that finds it closed opens it. */
import { checkServerIdentity } from 'node:tls'
import { Command, Redis, type RedisOptions } from 'ioredis'
import type { Deadline } from '../../../../isolate/deadline.ts'
import type { RedisCommand, RedisReply, UsedSocket } from '../../../../redis/connection.ts'
import type { RedisTarget } from '../../environment/redis-url.ts'
import { oncePerTurn } from '../../system/once-per-turn.ts'
import { isBusy, isErrorReply, isForbidden, unreadable } from './faults.ts'
import { hiddenRefusals, refusalLog } from './refusals.ts'
import { createMarks } from './reply-marks.ts'
import { isReplica, requireUsable } from './server-info.ts'

const CONNECT_TIMEOUT_MS = 2_000
const FIRST_PAUSE_MS = 25
/** Shorter than the shortest period of a circuit breaker, so that its probe reaches Redis. */
const LONGEST_PAUSE_MS = 200
/** A master that becomes a replica keeps its sockets, and answers reads. Its replies are used no longer than this. */
const ROLE_MS = 1_000
/** Unlike `ROLE`, it is among the rights that the gateway needs. */
const ROLE: RedisCommand = ['INFO', 'replication']
/** A full memory is logged at most so long after its first refusal. */
const REFUSALS_MS = 10_000
const REFUSALS: RedisCommand = ['INFO', 'errorstats']

export type RespSocket = ReturnType<typeof createRespSocket>

export interface RespSocketOptions {
  /** Throws for the `INFO` of a server that must not be used. Default: {@link requireUsable}. */
  readonly accept?: (info: string) => void
  /** The name in the server's certificate, if the server is known by an address only. */
  readonly certificateName?: string | undefined
  /** Whether marks prove the order of replies. Default true. Sentinels have no `ECHO`. */
  readonly isMarked?: boolean
  /** Called when an open socket has been lost. Must not throw. */
  readonly onLost?: () => void
}

type Output = NonNullable<Parameters<Redis['sendCommand']>[1]>

/** An open socket, and what its commands are written to. */
interface Link {
  readonly redis: Redis
  readonly output: Output
  /** Undefined: the server has no marks. */
  marks: ReturnType<typeof createMarks> | undefined
  /** When the role must be checked again, by `performance.now()`. */
  roleDueMs: number
  /** Why no reply may be used any more. */
  doubt: unknown
}

/**
 * Creates a closed socket. It is replaced if calls wait and Redis sends nothing for `silenceMs`.
 * Nothing is queued while it is closed. After a failure, no attempt follows for a random pause of at
 * most 200 ms, and calls fail at once with the last cause.
 */
export function createRespSocket(
  target: RedisTarget | (() => RedisTarget),
  silenceMs: number,
  { accept = requireUsable, certificateName, isMarked = true, onLost }: RespSocketOptions = {},
) {
  const targetNow = typeof target === 'function' ? target : () => target
  let current: Link | undefined
  let opening: Promise<Link> | undefined
  let isClosed = false
  let failures = 0
  let pausedUntilMs = 0
  let lastCause: unknown
  let hasMarks = isMarked
  const logRefusal = refusalLog()
  const readRefusals = hiddenRefusals(logRefusal)
  let refusalsDueMs = Number.POSITIVE_INFINITY

  function failed(cause: unknown): void {
    const longestMs = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS)
    pausedUntilMs = failures === 0 ? 0 : performance.now() + longestMs * (1 - Math.random() / 2)
    failures += 1
    lastCause = cause
  }

  function drop(link: Link, cause: unknown): void {
    if (current !== link) return
    current = undefined
    discard(link.redis)
    failed(cause)
    onLost?.()
  }

  async function connected(): Promise<Link> {
    try {
      const options = createOptions(targetNow(), silenceMs, certificateName)
      const redis = await connect(options, (info) => {
        accept(info)
        if (!isMarked) return
        readRefusals(info, true)
        refusalsDueMs = performance.now() + REFUSALS_MS
      })
      // `accept` has seen the role. Sentinels, and nodes of a cluster, have checks of their own.
      const roleDueMs =
        accept === requireUsable ? performance.now() + ROLE_MS : Number.POSITIVE_INFINITY
      const link = createLink(redis, roleDueMs)
      // At once, and not with the next call: the server at the address may be another one by then.
      redis.once('close', () => drop(link, new Error('the connection was closed')))
      if (!isClosed) current = link
      else discard(redis)
      return link
    } catch (cause) {
      failed(cause)
      throw cause
    } finally {
      opening = undefined
    }
  }

  function createLink(redis: Redis, roleDueMs: number): Link {
    const marks = hasMarks ? createMarks(stopMarks) : undefined
    const link: Link = {
      ...{ redis, roleDueMs, marks, doubt: undefined },
      output: createOutput(redis, () => marks?.end()),
    }
    function stopMarks(): void {
      link.marks = undefined
      if (hasMarks) console.error(NO_ECHO)
      hasMarks = false
    }
    return link
  }

  async function reopened(): Promise<Link> {
    if (current !== undefined) drop(current, new Error('the connection was closed'))
    if (isClosed) throw new Error('the connection is closed')
    if (opening === undefined && performance.now() < pausedUntilMs) throw lastCause
    opening ??= connected()
    return opening
  }

  /**
   * Queries the role in front of the commands of this turn, so that its reply is read before theirs. A user without the
   * right to do so is not checked again.
   */
  function checkRole(link: Link, nowMs: number): void {
    link.roleDueMs = nowMs + ROLE_MS
    sendOverLink(link, ROLE).then(
      (role) => {
        // Another text is the reply to another command, as after one that nothing had asked for.
        const isInfo = typeof role === 'string' && INFO.test(role)
        if (isInfo && !isReplica(role)) return
        link.doubt = isInfo ? new Error('the server has become a replica') : unreadable()
        drop(link, link.doubt)
      },
      (cause: unknown) => {
        if (isForbidden(cause)) link.roleDueMs = Number.POSITIVE_INFINITY
      },
    )
  }

  /** Reads what the server has refused. A reply to another command has no such counts. */
  function checkRefusals(link: Link, nowMs: number): void {
    refusalsDueMs = nowMs + REFUSALS_MS
    sendOverLink(link, REFUSALS).then(
      (info) => {
        if (typeof info === 'string') readRefusals(info)
      },
      (cause: unknown) => {
        if (isForbidden(cause)) refusalsDueMs = Number.POSITIVE_INFINITY
      },
    )
  }

  async function exchange(link: Link, commands: readonly RedisCommand[], over?: UsedSocket) {
    if (over !== undefined) over.socket = link
    const nowMs = performance.now()
    if (nowMs >= link.roleDueMs) checkRole(link, nowMs)
    if (nowMs >= refusalsDueMs) checkRefusals(link, nowMs)
    try {
      const pending = repliesTo(link, commands)
      const marked = link.marks?.doubt()
      let replies = await pending
      const doubt = (await marked) ?? link.doubt
      // While a script runs for too long, nothing proves the order. The socket may be good.
      if (isBusy(doubt)) replies = commands.map(() => ({ error: doubt.message }))
      else if (doubt !== undefined) {
        link.doubt = doubt
        throw doubt
      }
      failures = 0
      for (const [at, { error }] of replies.entries()) {
        if (error === undefined) continue
        // Settings are read if the user may read them.
        if (commands[at]?.[0] !== 'CONFIG') logRefusal(error)
        if (NEEDS_ANOTHER_SOCKET.test(error)) drop(link, new Error('the server refuses commands'))
      }
      return replies
    } catch (cause) {
      if (isErrorReply(cause)) logRefusal(cause.message)
      drop(link, cause)
      throw cause
    }
  }

  const isUsable = (link: Link | undefined): link is Link => link?.redis.status === 'ready'

  return {
    /** Opens the socket if it is closed. Throws the cause if that fails, or failed a moment ago. */
    open: async (): Promise<unknown> => (isUsable(current) ? current : reopened()),
    /**
     * Opens the socket if it is closed, and sends all commands in one write, which other commands of
     * the same turn of the event loop share. Sends nothing after `deadline` has expired. Throws the cause
     * if the socket is lost before all replies have arrived: Redis may have run the commands. With
     * `over`, see `SendOptions`.
     */
    send(
      commands: readonly RedisCommand[],
      deadline: Pick<Deadline, 'isExpired'>,
      over?: UsedSocket,
    ): Promise<readonly RedisReply[]> {
      if (over?.socket !== undefined && !(over.socket === current && isUsable(current)))
        return Promise.reject(new Error('the socket of the earlier call is closed'))
      // Without a promise, so that all calls of a turn share one write.
      if (isUsable(current)) return exchange(current, commands, over)
      return reopened().then((link) => {
        if (deadline.isExpired) throw new Error('the deadline has passed')
        return exchange(link, commands, over)
      })
    },
    /** Drops the socket. Calls in progress fail; the next call opens another one. */
    drop(cause: Error): void {
      if (current !== undefined) drop(current, cause)
    },
    close(): void {
      isClosed = true
      if (current !== undefined) discard(current.redis)
    },
  }
}

/** Connects, logs in, and selects the database. Throws if one of these fails. */
async function connect(options: RedisOptions, accept: (info: string) => void): Promise<Redis> {
  const redis = new Redis(options)
  let cause: unknown
  // After any error the replies that follow might be those of other commands.
  redis.on('error', (error) => {
    cause ??= error
    discard(redis)
  })
  redis.once('connect', () => endAtUnreadable(redis))
  try {
    await redis.connect()
    // The reply follows those to AUTH and SELECT.
    const info = await redis.info().catch(unlessForbidden)
    // Another text is the reply to something else, and so would be all later ones.
    if (!INFO.test(info)) throw unreadable()
    accept(info)
    if (cause !== undefined) throw cause
    return redis
  } catch (error) {
    discard(redis)
    throw cause ?? error
  }
}

const NO_ECHO =
  'redis: the user may not run ECHO, so replies that are not those of their commands are found after a second only; permit +echo'

/** The beginning of a reply to `INFO`: empty, a section, or a field. */
const INFO = /^(?:$|\s*(?:#|\w+:))/

/**
 * Ends the socket if the parser of the library throws, as for an array of 10^15 items. Without this, the exception would be
 * one that no code catches, which ends a program.
 */
function endAtUnreadable({ stream }: Redis): void {
  const [parse] = stream.listeners('data') as ((chunk: Buffer) => void)[]
  if (parse === undefined) return
  stream.prependListener('data', (chunk: Buffer) => {
    try {
      parse(chunk)
    } catch {
      stream.destroy(unreadable())
    }
  })
  stream.off('data', parse)
}

/** Returns an empty text for a user without the right to call `INFO`. */
function unlessForbidden(error: unknown): string {
  if (isForbidden(error)) return ''
  throw error
}

function createOptions(
  target: RedisTarget,
  silenceMs: number,
  certificateName: string | undefined,
): RedisOptions {
  const { servers, username, password, tls, database } = target
  const [server] = servers
  if (server === undefined) throw new Error('the master is not known')
  return {
    ...(username && { username }),
    ...(password && { password }),
    ...server,
    ...(tls && { tls: certificateFor(certificateName) }),
    db: database,
    // IPv4 and IPv6.
    family: 0,
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: silenceMs,
    // A lost socket is replaced here. Commands fail at once, and the library sends none twice.
    retryStrategy: () => null,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    enableReadyCheck: false,
    disableClientInfo: true,
  }
}

/** Accepts a certificate for the name, or for the address of the server. */
const certificateFor = (name: string | undefined): NonNullable<RedisOptions['tls']> =>
  name === undefined
    ? {}
    : {
        servername: name,
        checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
      }

function repliesTo(link: Link, commands: readonly RedisCommand[]): Promise<RedisReply[]> {
  const [command] = commands
  // Most calls have one command.
  if (commands.length === 1 && command !== undefined)
    return sendOverLink(link, command).then(onlyResult, onlyError)
  return Promise.all(commands.map((each) => sendOverLink(link, each).then(resultReply, errorReply)))
}

function sendOverLink(link: Link, [name, ...args]: RedisCommand): Promise<unknown> {
  const { redis, output, marks } = link
  const mark = marks?.count()
  if (mark !== undefined) void redis.sendCommand(mark, output)
  // The library transforms replies by the name in lower case: HGETALL would not return a list.
  const upper = String(name).toUpperCase()
  const command = new Command(upper, args, { replyEncoding: 'utf8' })
  return redis.sendCommand(command, output) as Promise<unknown>
}

const resultReply = (result: unknown): RedisReply => ({ result })

function errorReply(error: unknown): RedisReply {
  if (isErrorReply(error)) return { error: error.message }
  throw error
}

const onlyResult = (result: unknown): RedisReply[] => [{ result }]
const onlyError = (error: unknown): RedisReply[] => [errorReply(error)]

/**
 * Returns an output that combines everything that is sent in one turn of the event loop into one text. A
 * corked socket would write one chunk for each command, which costs more.
 */
function createOutput(redis: Redis, endOfTurn: () => Command | undefined): Output {
  const output = (write: (text: string | Buffer) => void): Output => ({
    ...{ isPipeline: true, write, destination: { redis } },
  })
  let last: string | Buffer = ''
  const lastOutput = output((text) => {
    last = text
  })
  const write = oncePerTurn<string | Buffer>((texts) => {
    const mark = endOfTurn()
    last = ''
    if (mark !== undefined) void redis.sendCommand(mark, lastOutput)
    if (redis.stream.writable) redis.stream.write(texts.join('') + last)
  })
  return output(write)
}

/**
 * After a failover the address leads to a replica, until it is resolved again. A server that wants a login has lost the one of
 * the socket, as behind a proxy.
 */
const NEEDS_ANOTHER_SOCKET = /^(?:READONLY|MASTERDOWN|NOAUTH) |-READONLY /

/** Closes the socket without waiting for replies. */
function discard(redis: Redis): void {
  redis.disconnect()
  // Undefined before the first attempt to connect, although the type does not say so.
  redis.stream?.destroy()
}
