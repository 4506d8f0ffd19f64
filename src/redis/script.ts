/** Runs Lua scripts by their digest (`EVALSHA`) if Redis has cached them, else by their text. */

import type { RedisCommand, RedisConnection, RedisReply } from './connection.ts'
import { readResult, sendCommand } from './reply.ts'

/**
 * Shebang with a flag of Upstash. With the flag, Upstash locks only the declared keys of a script
 * instead of the whole database, and refuses access to other keys. Redis and Valkey refuse to load
 * a script with this flag.
 */
export const KEY_LOCKING = '#!lua flags=allow-key-locking\n'

/** Shared by all clients of one server in this isolate. */
interface Server {
  /** False after the server has refused to load a script with {@link KEY_LOCKING}. */
  takesFlag: boolean
}

const servers = new Map<string, Server>()
const serversByConnection = new WeakMap<RedisConnection, Server>()

/** A script, with or without {@link KEY_LOCKING}, as the server accepts it. */
export type Script = ReturnType<typeof createScript>

/**
 * Creates a script from its text without a shebang. With `keys: 'declared'`, the default, KEYS must
 * contain every key that the script uses, and the script has {@link KEY_LOCKING}. A script that
 * computes names of keys (`derived`) locks the whole database of Upstash while it runs.
 */
export function createScript(
  plain: string,
  { keys = 'declared' }: { readonly keys?: 'declared' | 'derived' } = {},
) {
  const locking = KEY_LOCKING + plain
  /** Digests by text. Not promises: a request must not await a promise of another request. */
  const names = new Map<string, string>()
  const text = (redis: RedisConnection) =>
    keys === 'declared' && findServer(redis).takesFlag ? locking : plain
  async function digest(full: string): Promise<string> {
    const name = await scriptName(full)
    names.set(full, name)
    return name
  }
  return {
    text,
    /** Returns the digest of the text; a promise the first time. */
    name(redis: RedisConnection): string | Promise<string> {
      const full = text(redis)
      return names.get(full) ?? digest(full)
    },
  }
}

/** Runs a script in its own call and returns its result. Throws `Unavailable` if it failed. */
export async function runScript(
  redis: RedisConnection,
  script: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  const command = ['EVALSHA', await script.name(redis), keys.length, ...keys, ...args]
  const [reply] = await redis.send([command])
  return scriptResult(redis, { script, command, reply })
}

/** Returns the command that runs a script by its full text, for rare calls. */
export function evalCommand(
  text: string,
  keys: readonly string[],
  args: readonly (string | number)[],
): RedisCommand {
  return ['EVAL', text, keys.length, ...keys, ...args]
}

/** Runs a script by its full text; see {@link evalCommand}. Throws `Unavailable` if it failed. */
export function runText(
  redis: RedisConnection,
  text: string,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  return sendCommand(redis, evalCommand(text, keys, args))
}

interface SentScript {
  readonly script: Script
  readonly command: RedisCommand
  readonly reply: RedisReply | undefined
}

/** Returns the result of one script; see {@link scriptReplies}. Throws `Unavailable` without one. */
export async function scriptResult(redis: RedisConnection, sent: SentScript): Promise<unknown> {
  const [reply] = isUnknownScript(sent.reply) ? await scriptReplies(redis, [sent]) : [sent.reply]
  return readResult(reply)
}

/**
 * Returns the replies of scripts that were sent by digest. Sends scripts again with their texts if
 * Redis had not cached them (after a restart or a failover) and so did not run them: in one call
 * and in the same order.
 *
 * A text with Upstash's flag is loaded by one command and run by the next. So a server that refuses
 * the flag has run nothing, whatever its error message is. The script is then sent without the
 * flag, as are all later scripts to this server.
 */
export async function scriptReplies(
  redis: RedisConnection,
  sent: readonly SentScript[],
): Promise<readonly (RedisReply | undefined)[]> {
  const replies = sent.map(({ reply }) => reply)
  const unknown = () => [...sent.entries()].filter(([at]) => isUnknownScript(replies[at]))

  const missing = unknown()
  if (missing.some(([, { script }]) => script.text(redis).startsWith(KEY_LOCKING))) {
    const commands: RedisCommand[] = []
    for (const [, { script, command }] of missing) {
      commands.push(['SCRIPT', 'LOAD', script.text(redis)])
      commands.push(['EVALSHA', await script.name(redis), ...command.slice(2)])
    }
    const loaded = await redis.send(commands)
    for (const [index, [at]] of missing.entries()) {
      replies[at] = loaded[2 * index + 1]
      const isRefused = loaded[2 * index]?.error !== undefined && isUnknownScript(replies[at])
      if (isRefused) findServer(redis).takesFlag = false
    }
    if (findServer(redis).takesFlag) return replies
  }

  const left = unknown()
  if (left.length === 0) return replies
  const ran = await redis.send(
    left.map(([, { script, command }]) => ['EVAL', script.text(redis), ...command.slice(2)]),
  )
  for (const [index, [at]] of left.entries()) replies[at] = ran[index]
  return replies
}

function findServer(redis: RedisConnection): Server {
  const known =
    redis.server === undefined ? serversByConnection.get(redis) : servers.get(redis.server)
  if (known !== undefined) return known
  const server: Server = { takesFlag: redis.keyLocking ?? true }
  if (redis.server === undefined) serversByConnection.set(redis, server)
  else servers.set(redis.server, server)
  return server
}

/** Reports whether Redis had not cached a script, and so did not run it. */
function isUnknownScript(reply: RedisReply | undefined): boolean {
  return reply?.error?.includes('NOSCRIPT') ?? false
}

/** Returns the SHA-1 digest of a script, the argument of `EVALSHA`. */
export async function scriptName(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
