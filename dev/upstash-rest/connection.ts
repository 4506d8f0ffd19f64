/**
 * The connection to Redis that all requests share, and separate connections for commands that would
 * block it. Transfers raw bytes. The commands of one request are sent in one write.
 */
import { Redis, Command as RedisCommand, ReplyError } from 'ioredis'
import { type Command, isBlocking, type Reply, unavailable } from './command.ts'
import { Refusal } from './refusal.ts'

/** How long Redis may send nothing while commands wait, before the connection is dropped. */
const SILENCE_LIMIT_MS = 5_000
const CONNECT_TIMEOUT_MS = 2_000
const MAX_RECONNECT_DELAY_MS = 500

const MULTI: Command = { name: 'MULTI', args: [] }
const EXEC: Command = { name: 'EXEC', args: [] }

/** Runs commands. While Redis is unreachable, each method throws a 503 `Refusal` at once. */
export interface Connection {
  /**
   * Returns all replies in order. Error replies are values. If a command may block, registers with
   * `whenGone`, so that the command ends when its caller disconnects.
   */
  run(commands: readonly Command[], whenGone: WhenGone): Promise<readonly Reply[]>
  /**
   * Runs the commands as a transaction. Throws a 400 `Refusal` if a command is refused before
   * `EXEC`.
   */
  transact(commands: readonly Command[]): Promise<readonly Reply[]>
  /** Returns a connected client for one caller, which must disconnect it. */
  own(): Promise<Redis>
  close(): void
}

/** Registers a listener for the disconnect of the caller. */
export type WhenGone = (listener: () => void) => void

/** Connects to `url`. Throws, without the URL's credentials, if Redis does not respond. */
export async function connect(url: string): Promise<Connection> {
  const shared = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // Commands fail at once if Redis is unreachable, and are never sent twice.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(attempt * 50, MAX_RECONNECT_DELAY_MS),
    // Returns integers as digits, which distinguishes them from text and keeps all 64 bits.
    stringNumbers: true,
    disableClientInfo: true,
  })
  const failure = await failureToConnect(shared)
  if (failure !== undefined) {
    shared.disconnect()
    throw new Error(`no response from Redis at ${new URL(url).host} (${failure})`)
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
      // Sent in one write on one connection, so that no command of another request comes between.
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
  // Also keeps later connection errors from being thrown. Callers receive them as a `Refusal`.
  redis.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    reason = code ?? message
  })
  return redis.connect().then(
    () => undefined,
    () => reason,
  )
}

/** Sends commands in one write. A command that is not available gets an error reply. */
function replies(redis: Redis, commands: readonly Command[]): Promise<Reply[]> {
  // Undefined before the first connection.
  if (redis.stream) corkUntilNextTurn(redis)
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
    if (error instanceof ReplyError) return error as Error
    throw unreachable(error)
  }
}

const unreachable = (cause: unknown): Refusal =>
  new Refusal(503, 'ERR Redis is unavailable', { cause })

/** Drops the connection if Redis sends nothing for too long. Waiting commands then fail. */
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

/** Combines everything that is sent in this turn of the event loop into one write. */
function corkUntilNextTurn({ stream }: Redis): void {
  if (stream.writableCorked > 0) return
  stream.cork()
  setImmediate(() => stream.uncork())
}
