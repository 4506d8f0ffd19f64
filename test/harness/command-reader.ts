/** Reads the commands that a client of Redis sends (RESP): arrays of bulk strings. */

const LINE_END = '\r\n'

/**
 * Returns a function that gets the bytes of a connection in any pieces, and returns the commands that each piece
 * completes. Texts are latin1. Throws an `Error` for anything but an array of bulk strings.
 */
export function createCommandReader() {
  let rest = ''

  /** Returns the command at the start and its length; undefined if it is incomplete. */
  function first(): { command: string[]; length: number } | undefined {
    let at = 0
    function number(sign: string): number | undefined {
      const end = rest.indexOf(LINE_END, at)
      if (end === -1) return undefined
      if (rest[at] !== sign) throw new Error(`expected ${sign} in ${rest.slice(at, at + 20)}`)
      const value = Number(rest.slice(at + 1, end))
      at = end + LINE_END.length
      return value
    }
    const count = rest === '' ? undefined : number('*')
    if (count === undefined) return undefined
    const command: string[] = []
    for (let index = 0; index < count; index++) {
      const length = number('$')
      if (length === undefined || rest.length < at + length + LINE_END.length) return undefined
      command.push(rest.slice(at, at + length))
      at += length + LINE_END.length
    }
    return { command, length: at }
  }

  return (data: Buffer): readonly (readonly string[])[] => {
    rest += data.toString('latin1')
    const commands: string[][] = []
    for (let next = first(); next !== undefined; next = first()) {
      rest = rest.slice(next.length)
      commands.push(next.command)
    }
    return commands
  }
}
