/**
 * What a caller asks of Redis, and which commands a connection that everyone shares can carry.
 */

/** One argument: text, or raw bytes where the caller sent bytes. */
export type Argument = string | Buffer

/** A Redis command: its name in upper case, and its arguments. */
export interface Command {
  readonly name: string
  readonly args: readonly Argument[]
}

/**
 * What Redis answered. A `string` is the digits of an integer (64 bits do not fit a `number`), a
 * `Buffer` is text or bytes, an `Error` is an error reply, which arrays may contain too.
 */
export type Reply = Buffer | string | null | Error | readonly Reply[]

export const isBytes = (reply: Reply): reply is Buffer => Buffer.isBuffer(reply)

/** Commands that answer for as long as the caller listens: only as `text/event-stream`. */
const STREAMING = new Set(['SUBSCRIBE', 'PSUBSCRIBE', 'MONITOR'])

/** Commands that change the connection they are sent on, or end the server behind it. */
const BOUND_TO_A_CONNECTION = new Set([
  ...['MULTI', 'EXEC', 'DISCARD', 'WATCH', 'UNWATCH', 'SELECT', 'AUTH', 'HELLO', 'RESET', 'QUIT'],
  ...['SSUBSCRIBE', 'UNSUBSCRIBE', 'PUNSUBSCRIBE', 'SUNSUBSCRIBE', 'CLIENT', 'READONLY'],
  ...['READWRITE', 'ASKING', 'SYNC', 'PSYNC', 'REPLCONF', 'SHUTDOWN'],
])

const BLOCKING = new Set([
  ...['BLPOP', 'BRPOP', 'BRPOPLPUSH', 'BLMOVE', 'BLMPOP', 'BZPOPMIN', 'BZPOPMAX', 'BZMPOP'],
  ...['WAIT', 'WAITAOF'],
])

/** Whether the command is one of those that stream events. */
export const isStreaming = ({ name }: Command): boolean => STREAMING.has(name)

/** The error reply for a command that a request and its answer cannot carry, else `undefined`. */
export function unavailable(command: Command): Error | undefined {
  const { name } = command
  if (isStreaming(command)) {
    return new Error(`ERR ${name} needs the header Accept: text/event-stream`)
  }
  return BOUND_TO_A_CONNECTION.has(name)
    ? new Error(`ERR Command is not available: '${name}'`)
    : undefined
}

/** Whether the command may make its connection wait, and so must not share it. */
export function isBlocking({ name, args }: Command): boolean {
  if (name === 'XREAD' || name === 'XREADGROUP') {
    return args.some((arg) => arg.length === 5 && arg.toString().toUpperCase() === 'BLOCK')
  }
  return BLOCKING.has(name)
}
