/** Finds changed files of a policy by looking at them, which works on every file system and in containers. */
import { statSync } from 'node:fs'

/** Looking at some files costs microseconds. */
const LOOK_MS = 250

/**
 * Creates a watch of `files` as they are now. The function that it returns calls `changed` when a file has
 * changed, was removed or has come back, and has stayed the same for a quarter of a second since. The process
 * does not stay alive for it.
 */
export function policyWatch(
  files: () => readonly string[],
): (changed: () => Promise<unknown>) => void {
  /** The state of each file that the current version was loaded from. */
  const known = new Map<string, string>()
  let last = ''

  /** Returns the state of all files. A file that was not known is new in the version that was loaded last. */
  function look(): readonly (readonly [string, string])[] {
    const states = files().map((file) => [file, stateOf(file)] as const)
    for (const [file, state] of states) if (!known.has(file)) known.set(file, state)
    return states
  }

  async function compare(changed: () => Promise<unknown>): Promise<void> {
    const states = look()
    const now = JSON.stringify(states)
    const isSettled = now === last
    last = now
    if (!isSettled || states.every(([file, state]) => known.get(file) === state)) return
    known.clear()
    for (const [file, state] of states) known.set(file, state)
    await changed()
    look()
  }

  look()
  return function start(changed) {
    setTimeout(() => void compare(changed).then(() => start(changed)), LOOK_MS).unref()
  }
}

function stateOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false, bigint: true })
  return stat === undefined ? 'absent' : `${stat.ino} ${stat.size} ${stat.mtimeNs}`
}
