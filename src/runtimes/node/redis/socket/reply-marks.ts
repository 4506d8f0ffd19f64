/** Marks between the commands of a socket. They prove that replies are those of their own commands. */
import { randomBytes } from 'node:crypto'
import { Command } from 'ioredis'
import { isErrorReply, unreadable } from './faults.ts'

/** A mark follows after so many commands, so that the first calls of a burst do not wait for its last reply. */
const COMMANDS_PER_MARK = 16

/** `ECHO` with a text that no other reply of the socket has. */
interface Mark {
  readonly command: Command
  /** Resolves with the reason why no reply before the mark may be used. Undefined: they are in order. */
  readonly doubt: Promise<unknown>
}

/**
 * Creates the marks of one socket. Replies have no numbers: after one that no command has asked for, as from a faulty
 * proxy, each command gets the reply of another one. The mark behind a command is in the same write, so it costs no
 * round trip. Does not find replies that have changed places between two marks. `onForbidden` is called if the user may
 * not run `ECHO`.
 */
export function createMarks(onForbidden: () => void) {
  const id = randomBytes(6).toString('base64url')
  let serial = 0
  let commands = 0
  let next: Mark | undefined

  function createMark(): Mark {
    const text = id + serial++
    const command = new Command('ECHO', [text], { replyEncoding: 'utf8' })
    const doubt = command.promise.then(
      (reply) => (reply === text ? undefined : unreadable()),
      (cause: unknown) => {
        if (!isErrorReply(cause) || !isForbiddenEcho(cause.message)) return cause
        onForbidden()
        return undefined
      },
    )
    return { command, doubt }
  }

  return {
    /** Counts a command that is about to be sent. Returns the command of a mark that must be sent before it. */
    count(): Command | undefined {
      const due = commands === COMMANDS_PER_MARK ? this.end() : undefined
      commands += 1
      next ??= createMark()
      return due
    },
    /** Returns the doubt of the mark behind the last command. */
    doubt: (): Promise<unknown> | undefined => next?.doubt,
    /** Returns the command of the mark behind the last command, to be sent now. Undefined: it is sent already. */
    end(): Command | undefined {
      const command = next?.command
      next = undefined
      commands = 0
      return command
    },
  }
}

/** Also if the command has another name on this server. The error names it, so it is the reply to a mark. */
export const isForbiddenEcho = (error: string): boolean =>
  /^(?:NOPERM|ERR unknown command)\b.*['`]echo\b/i.test(error)
