/** The common part of all commands: options, progress, Ctrl-C and exit codes. */
import { createShutdown, type Shutdown } from '../dev/start/shutdown.ts'

export interface RunContext {
  readonly argv: readonly string[]
  readonly shutdown: Shutdown
  /** Writes a line to stderr. */
  readonly progress: (what: string) => void
}

export interface Program<Options> {
  /** Begins each line on stderr. */
  readonly name: string
  /** Such as `npm run bench`. */
  readonly command: string
  /** The text of `--help`. */
  readonly usage: string
  /** Parses the command line. Throws an `Error` for invalid options. */
  readOptions(argv: readonly string[]): Options | 'help' | Promise<Options | 'help'>
  /** Runs the command. Returns the exit code. */
  run(options: Options, context: RunContext): Promise<number>
}

/** Runs a command. Exit code 1: it failed or was interrupted. 2: the options are invalid. */
export async function runProgram<Options>(program: Program<Options>): Promise<void> {
  const { name, command, usage } = program
  const argv = process.argv.slice(2)
  const progress = (what: string) => console.error(`${name}: ${what}`)
  let options: Options | 'help'
  try {
    options = await program.readOptions(argv)
  } catch (error) {
    const [problem] = (error as Error).message.split('\n')
    console.error(`${name}: ${problem}\nSee: ${command} -- --help`)
    process.exit(2)
  }
  if (options === 'help') {
    console.log(usage)
    return
  }
  const shutdown = createShutdown(1)
  try {
    await shutdown.exit(await program.run(options, { argv, shutdown, progress }))
  } catch (error) {
    if (!shutdown.signal.aborted) progress((error as Error).message)
    await shutdown.exit(1)
  }
}

export const commandLine = (command: string, argv: readonly string[]): string =>
  [command, ...(argv.length > 0 ? ['--', ...argv] : [])].join(' ')
