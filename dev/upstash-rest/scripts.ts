/**
 * `allow-key-locking` is a script flag of Upstash that Redis refuses ("Unexpected flag in script
 * shebang"). It only tells Upstash which locks to take, so it is dropped on the way in; and as a
 * script's name is the SHA-1 of its text, names are mapped both ways.
 *
 * Does NOT hold scripts to the flag's promise that every key is declared.
 *
 * @see https://upstash.com/docs/redis/features/key-locking
 */
import { createHash } from 'node:crypto'
import { type Argument, type Command, isBytes, type Reply } from './command.ts'
import type { Connection } from './connection.ts'

const FLAG = 'allow-key-locking'
const SHEBANG = /^#!lua[ \t]+flags=([^\r\n]*)/

/** How many names are remembered; a forgotten script answers NOSCRIPT and is sent again. */
const MAX_NAMES = 10_000

/** The same connection, for scripts with the flag too. */
export function withScriptFlags(connection: Connection): Connection {
  /** SHA-1 of a script as sent, to the SHA-1 of what Redis got, oldest first. */
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
    // EVAL and EVALSHA begin with the script; SCRIPT names it, or several, after its subcommand.
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

/** A loaded script's name is the SHA-1 of the text that was sent. */
function fromRedis(command: Command, reply: Reply): Reply {
  const script = isLoad(command) ? command.args[1] : undefined
  return script !== undefined && isBytes(reply) ? Buffer.from(sha1(script)) : reply
}

const isLoad = ({ name, args }: Command): boolean =>
  name === 'SCRIPT' && args[0]?.toString().toUpperCase() === 'LOAD'

const sha1 = (script: Argument): string => createHash('sha1').update(script).digest('hex')

/** The script without the flag: the same value if it has none. Its line numbers do not change. */
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
