/** The running processes and their children. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'

interface Process {
  readonly pid: number
  readonly parent: number
}

/** Returns all direct and indirect children of `pid`. */
export function descendantsOf(pid: number): readonly number[] {
  const all = processes()
  const found = [pid]
  for (const parent of found) {
    found.push(...all.filter((one) => one.parent === parent).map((one) => one.pid))
  }
  return found.slice(1)
}

/** Returns those of `pids` that are still running. */
export function alive(pids: readonly number[]): readonly number[] {
  const running = new Set(processes().map(({ pid }) => pid))
  return pids.filter((pid) => running.has(pid))
}

/** Returns the command line of a process. */
export function commandOf(pid: number): string {
  return execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
}

/** Returns all processes except zombies. */
function processes(): readonly Process[] {
  const rows = existsSync('/proc/self/stat') ? fromProc() : fromPs()
  return rows.filter(({ state }) => !state.startsWith('Z'))
}

function fromProc(): (Process & { readonly state: string })[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const text = readFileSync(`/proc/${name}/stat`, 'utf8')
        // The command, in parentheses, may contain any character.
        const [state = '', parent] = text.slice(text.lastIndexOf(')') + 2).split(' ')
        return [{ pid: Number(name), parent: Number(parent), state }]
      } catch {
        return []
      }
    })
}

function fromPs(): (Process & { readonly state: string })[] {
  return execFileSync('ps', ['-eo', 'pid=,ppid=,stat='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((row) => {
      const [pid, parent, state = ''] = row.trim().split(/\s+/)
      return { pid: Number(pid), parent: Number(parent), state }
    })
}
