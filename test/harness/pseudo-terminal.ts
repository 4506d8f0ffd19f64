/** A command in a pseudo terminal, as a person runs it. Needs `script` of util-linux. */
import { spawn, spawnSync } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'

/** Whether this machine has a `script` that takes a command. */
export const hasPseudoTerminal = /util-linux/.test(
  spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '',
)

export interface PseudoTerminal {
  /** What the terminal shows so far, with its escape sequences. */
  text(): string
  /** Resolves when the text from `from` on matches. Throws if the command ends first. */
  shows(what: RegExp, from?: number): Promise<string>
  /** Types keys. */
  type(keys: string): void
  /** Resolves to the exit code. */
  readonly ended: Promise<number | null>
  kill(): void
}

const POLL_MS = 20

/** Runs `command`, a line of a shell, in a terminal with this many columns. */
export function openPseudoTerminal(
  command: string,
  { cwd, env, columns = 100 }: { cwd: string; env: NodeJS.ProcessEnv; columns?: number },
): PseudoTerminal {
  const line = `stty cols ${columns} rows 30; exec ${command}`
  const child = spawn('script', ['-qefc', line, '/dev/null'], { cwd, env, stdio: 'pipe' })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
  let hasEnded = false
  const ended = new Promise<number | null>((resolve) =>
    child.once('close', (code) => {
      hasEnded = true
      resolve(code)
    }),
  )
  child.stdin.on('error', () => {})
  return {
    text: () => text,
    async shows(what, from = 0) {
      while (!what.test(text.slice(from))) {
        if (hasEnded) throw new Error(`ended before it showed ${what}: ${text}`)
        await wait(POLL_MS)
      }
      return text.slice(from)
    },
    type: (keys) => void child.stdin.write(keys),
    ended,
    kill: () => void child.kill('SIGTERM'),
  }
}
