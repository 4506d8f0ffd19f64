/** Which processes there are, and whose children. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'

interface Process {
  readonly pid: number
  readonly parent: number
}

/** Everything that `pid` started, directly or not. */
export function descendantsOf(pid: number): readonly number[] {
  const all = processes()
  const found = [pid]
  for (const parent of found) {
    found.push(...all.filter((one) => one.parent === parent).map((one) => one.pid))
  }
  return found.slice(1)
}

/** Those of `pids` that still run. */
export function alive(pids: readonly number[]): readonly number[] {
  const running = new Set(processes().map(({ pid }) => pid))
  return pids.filter((pid) => running.has(pid))
}

/** The command line of a process. */
export function commandOf(pid: number): string {
  return execFileSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
}

/** All processes, without the dead that nobody has buried yet. */
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
        // The command, in parentheses, may hold anything.
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
