/**
 * Support for `allow-key-locking`, a script flag of Upstash that Redis refuses ("Unexpected flag in
 * script shebang"). The flag only determines which locks Upstash takes, so it is removed from
 * scripts. This changes the SHA-1 that identifies a script, so SHA-1s are mapped in both
 * directions.
 *
 * Does NOT check that the script declares every key, which the flag requires.
 *
 * @see https://upstash.com/docs/redis/features/key-locking
 */
import { createHash } from 'node:crypto'
import { type Argument, type Command, isBytes, type Reply } from './command.ts'
import type { Connection } from './connection.ts'

const FLAG = 'allow-key-locking'
const SHEBANG = /^#!lua[ \t]+flags=([^\r\n]*)/

/**
 * Maximum number of mapped scripts. For a dropped one, Redis replies NOSCRIPT and the client sends
 * it again.
 */
const MAX_NAMES = 10_000

/** Wraps a connection so that scripts with the flag work too. */
export function withScriptFlags(connection: Connection): Connection {
  /** SHA-1 of the original script to the SHA-1 of the changed script, oldest first. */
  const names = new Map<string, string>()

  function accepted(script: Argument): Argument {
    const plain = withoutFlag(script)
    if (plain !== script) {
      const [oldest] = names.keys()
      if (names.size >= MAX_NAMES && oldest !== undefined) names.delete(oldest)
      names.set(sha1(script), sha1(plain))
    }
    return plain
  }
  const renamed = (sha: Argument): Argument => names.get(sha.toString().toLowerCase()) ?? sha

  function toRedis(command: Command): Command {
    const translate = translationOf(command)
    if (translate === undefined) return command
    // EVAL and EVALSHA begin with the script. SCRIPT has one or more after its subcommand.
    const [first = '', ...rest] = command.args
    const args =
      command.name === 'SCRIPT' ? [first, ...rest.map(translate)] : [translate(first), ...rest]
    return { name: command.name, args }
  }

  function translationOf(command: Command): ((script: Argument) => Argument) | undefined {
    switch (command.name) {
      case 'EVAL':
      case 'EVAL_RO':
        return accepted
      case 'EVALSHA':
      case 'EVALSHA_RO':
        return renamed
      case 'SCRIPT':
        return isLoad(command) ? accepted : renamed
      default:
        return undefined
    }
  }

  return {
    ...connection,
    async run(commands, whenGone) {
      const replies = await connection.run(commands.map(toRedis), whenGone)
      return commands.map((command, index) => fromRedis(command, replies[index] ?? null))
    },
    async transact(commands) {
      const replies = await connection.transact(commands.map(toRedis))
      return commands.map((command, index) => fromRedis(command, replies[index] ?? null))
    },
  }
}

/** Returns the SHA-1 of the original text as the reply to `SCRIPT LOAD`. */
function fromRedis(command: Command, reply: Reply): Reply {
  const script = isLoad(command) ? command.args[1] : undefined
  return script !== undefined && isBytes(reply) ? Buffer.from(sha1(script)) : reply
}

const isLoad = ({ name, args }: Command): boolean =>
  name === 'SCRIPT' && args[0]?.toString().toUpperCase() === 'LOAD'

const sha1 = (script: Argument): string => createHash('sha1').update(script).digest('hex')

/**
 * Returns the script without the flag, or the same value if it has none. Keeps the line numbers.
 */
function withoutFlag(script: Argument): Argument {
  if (!script.includes(FLAG)) return script
  const text = typeof script === 'string' ? script : script.toString('latin1')
  const plain = text.replace(SHEBANG, (line, list: string) => {
    const flags = list.split(',').map((flag) => flag.trim())
    if (!flags.includes(FLAG)) return line
    const others = flags.filter((flag) => flag !== FLAG)
    return others.length === 0 ? '' : `#!lua flags=${others.join(',')}`
  })
  if (plain === text) return script
  return typeof script === 'string' ? plain : Buffer.from(plain, 'latin1')
}
