/**
 * The connection to Redis that all requests share, and connections of their own for the commands
 * that would hold it up. Raw bytes in and out; what one request asks is written in one piece.
 */
import { Redis, Command as RedisCommand } from 'ioredis'
import { type Command, isBlocking, type Reply, unavailable } from './command.ts'
import { Refusal } from './refusal.ts'

/** How long Redis may be silent while commands wait, before the connection is given up. */
const SILENCE_LIMIT_MS = 5_000
const CONNECT_TIMEOUT_MS = 2_000
const MAX_RECONNECT_DELAY_MS = 500

const MULTI: Command = { name: 'MULTI', args: [] }
const EXEC: Command = { name: 'EXEC', args: [] }

/** Runs commands. Each throws a 503 `Refusal` at once while Redis cannot be reached. */
export interface Connection {
  /**
   * Every reply, in order; error replies are values. Calls `whenGone` if a command may block, so
   * that it ends with the caller who waits for it.
   */
  run(commands: readonly Command[], whenGone: WhenGone): Promise<readonly Reply[]>
  /** The same, all or nothing: throws a 400 `Refusal` if a command is refused before `EXEC`. */
  transact(commands: readonly Command[]): Promise<readonly Reply[]>
  /** A connected client for one caller, who disconnects it. */
  own(): Promise<Redis>
  close(): void
}

/** Registers what to do when the caller has hung up. */
export type WhenGone = (listener: () => void) => void

/** Connects to `url`. Throws, without the URL's credentials, if Redis does not answer. */
export async function connect(url: string): Promise<Connection> {
  const shared = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // Nothing waits for a lost Redis, and nothing is sent twice.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(attempt * 50, MAX_RECONNECT_DELAY_MS),
    // Integers as their digits, which tells them from text and keeps all 64 bits.
    stringNumbers: true,
    disableClientInfo: true,
  })
  const failure = await failureToConnect(shared)
  if (failure !== undefined) {
    shared.disconnect()
    throw new Error(`no Redis answers on ${new URL(url).host} (${failure})`)
  }
  const watch = watchSilence(shared)

  async function own(): Promise<Redis> {
    const redis = shared.duplicate({ retryStrategy: () => null })
    const failure = await failureToConnect(redis)
    if (failure !== undefined) throw unreachable(failure)
    return redis
  }

  return {
    own,
    async run(commands, whenGone) {
      if (!commands.some(isBlocking)) return watch(replies(shared, commands))
      const redis = await own()
      whenGone(() => redis.disconnect())
      return replies(redis, commands).finally(() => redis.disconnect())
    },
    async transact(commands) {
      const refused = commands.map(unavailable).find((error) => error !== undefined)
      if (refused !== undefined) throw new Refusal(400, refused.message)
      // Sent without a pause on one connection: nobody else's command can come between.
      const answers = await watch(replies(shared, [MULTI, ...commands, EXEC]))
      const results = answers.at(-1)
      if (Array.isArray(results)) return results
      const cause = answers.find((answer) => answer instanceof Error)
      throw new Refusal(400, `EXECABORT Transaction discarded because of: ${cause?.message}`)
    },
    close: () => shared.disconnect(),
  }
}

async function failureToConnect(redis: Redis): Promise<string | undefined> {
  let reason = 'connection closed'
  // Also keeps later connection errors from being thrown: callers hear of them as a `Refusal`.
  redis.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    reason = code ?? message
  })
  return redis.connect().then(
    () => undefined,
    () => reason,
  )
}

/** Sends commands as one write. A command that cannot be sent is answered with its error. */
function replies(redis: Redis, commands: readonly Command[]): Promise<Reply[]> {
  corkUntilNextTurn(redis)
  return Promise.all(
    commands.map((command) => {
      const refused = command === MULTI || command === EXEC ? undefined : unavailable(command)
      return refused ?? send(redis, command)
    }),
  )
}

async function send(redis: Redis, { name, args }: Command): Promise<Reply> {
  const command = new RedisCommand(name, [...args], { replyEncoding: null })
  try {
    return (await redis.sendCommand(command)) as Reply
  } catch (error) {
    if (error instanceof Error && error.name === 'ReplyError') return error
    throw unreachable(error)
  }
}

const unreachable = (cause: unknown): Refusal =>
  new Refusal(503, 'ERR Redis is unavailable', { cause })

/** Gathers what is sent in this turn of the event loop, by every request, into one write. */
function corkUntilNextTurn({ stream }: Redis): void {
  if (!stream || stream.writableCorked > 0) return
  stream.cork()
  setImmediate(() => stream.uncork())
}

/** Drops the connection, which fails what waits on it, if Redis is silent for too long. */
function watchSilence(redis: Redis): <T>(work: Promise<T>) => Promise<T> {
  let waiting = 0
  let answered = 0
  let answeredBefore = -1
  const timer = setInterval(() => {
    if (waiting > 0 && answered === answeredBefore) redis.stream.destroy()
    answeredBefore = waiting > 0 ? answered : -1
  }, SILENCE_LIMIT_MS / 2)
  redis.once('end', () => clearInterval(timer))
  timer.unref()

  return async (work) => {
    waiting += 1
    try {
      return await work
    } finally {
      waiting -= 1
      answered += 1
    }
  }
}
