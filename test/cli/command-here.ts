/**
 * Runs the sources of the command line in the process of the test. A process of its own takes a quarter of a
 * second of a core to start, which says nothing about a command. Each file keeps a test with a real one. Commands
 * that load a policy, start a server or handle signals always need one: modules are loaded once in a process.
 */
import { Readable } from 'node:stream'
import { runCommandLine } from '../../cli/command-line.ts'
import type { CliEnvironment, Outcome } from './command-line.ts'

type Write = typeof process.stdout.write

/** Collects what is written to a stream of this process, until it is restored. */
function collect(stream: NodeJS.WriteStream) {
  const { write } = stream
  let text = ''
  stream.write = ((chunk: string | Uint8Array, ...rest: readonly unknown[]) => {
    text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
    const written = rest.find((argument) => typeof argument === 'function')
    if (typeof written === 'function') queueMicrotask(() => written())
    return true
  }) as Write
  return {
    text: () => text,
    restore() {
      stream.write = write
    },
  }
}

/** The calls of this process take turns: they share its folder, its variables and its streams. */
let turn: Promise<unknown> = Promise.resolve()

/** Runs `portcullis <args>` like `runCli`. */
export function runHere(
  args: readonly string[],
  environment: CliEnvironment = {},
): Promise<Outcome> {
  const ended = turn.then(() => runAlone(args, environment))
  turn = ended.catch(() => undefined)
  return ended
}

async function runAlone(
  args: readonly string[],
  { cwd = '/', env = {}, input = '' }: CliEnvironment,
): Promise<Outcome> {
  const { env: variables, exitCode } = process
  const stdin = Object.getOwnPropertyDescriptor(process, 'stdin')
  const folder = process.cwd()
  const [stdout, stderr] = [collect(process.stdout), collect(process.stderr)]
  try {
    process.chdir(cwd)
    process.env = { PATH: variables.PATH, ...env }
    process.exitCode = undefined
    Object.defineProperty(process, 'stdin', {
      value: Readable.from(input === '' ? [] : [Buffer.from(input)], { objectMode: false }),
      configurable: true,
    })
    const code = await runCommandLine(args)
    return { code, stdout: stdout.text(), stderr: stderr.text() }
  } finally {
    stdout.restore()
    stderr.restore()
    process.chdir(folder)
    process.env = variables
    process.exitCode = exitCode
    if (stdin !== undefined) Object.defineProperty(process, 'stdin', stdin)
  }
}
