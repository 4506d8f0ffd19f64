/** Redis commands and replies, and which commands a shared connection supports. */

/** One argument: text, or raw bytes if the caller sent bytes. */
export type Argument = string | Buffer

/** A Redis command: its name in upper case, and its arguments. */
export interface Command {
  readonly name: string
  readonly args: readonly Argument[]
}

/**
 * A reply of Redis. A `string` is the digits of an integer, because 64 bits do not fit in a
 * `number`. A `Buffer` is text or bytes. An `Error` is an error reply, which arrays may contain
 * too.
 */
export type Reply = Buffer | string | null | Error | readonly Reply[]

export const isBytes = (reply: Reply): reply is Buffer => Buffer.isBuffer(reply)

/**
 * Commands that send replies until the caller disconnects. Available only as `text/event-stream`.
 */
const STREAMING = new Set(['SUBSCRIBE', 'PSUBSCRIBE', 'MONITOR'])

/** Commands that change the state of their connection, or stop the Redis server. */
const BOUND_TO_A_CONNECTION = new Set([
  ...['MULTI', 'EXEC', 'DISCARD', 'WATCH', 'UNWATCH', 'SELECT', 'AUTH', 'HELLO', 'RESET', 'QUIT'],
  ...['SSUBSCRIBE', 'UNSUBSCRIBE', 'PUNSUBSCRIBE', 'SUNSUBSCRIBE', 'CLIENT', 'READONLY'],
  ...['READWRITE', 'ASKING', 'SYNC', 'PSYNC', 'REPLCONF', 'SHUTDOWN'],
])

const BLOCKING = new Set([
  ...['BLPOP', 'BRPOP', 'BRPOPLPUSH', 'BLMOVE', 'BLMPOP', 'BZPOPMIN', 'BZPOPMAX', 'BZMPOP'],
  ...['WAIT', 'WAITAOF'],
])

/** Reports whether the command streams events. */
export const isStreaming = ({ name }: Command): boolean => STREAMING.has(name)

/** Returns the error reply for a command that is not available over HTTP, or else undefined. */
export function unavailable(command: Command): Error | undefined {
  const { name } = command
  if (isStreaming(command)) {
    return new Error(`ERR ${name} needs the header Accept: text/event-stream`)
  }
  return BOUND_TO_A_CONNECTION.has(name)
    ? new Error(`ERR Command is not available: '${name}'`)
    : undefined
}

/** Reports whether the command may block its connection, and so must not use the shared one. */
export function isBlocking({ name, args }: Command): boolean {
  if (name === 'XREAD' || name === 'XREADGROUP') {
    return args.some((arg) => arg.length === 5 && arg.toString().toUpperCase() === 'BLOCK')
  }
  return BLOCKING.has(name)
}
