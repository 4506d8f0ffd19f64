/** Carries out one call of the command line. */
import { type Command, CommanderError } from 'commander'
import { didYouMean } from '../src/suggestions/did-you-mean.ts'
import { Failure, USAGE, usage } from './failure.ts'
import { printFailure } from './output.ts'
import { createProgram } from './program.ts'

/** Longer quoted text may be a misplaced credential, and is not repeated. */
const MAX_ECHO_CHARACTERS = 24
/** Commander's code for the help that it prints when a subcommand is missing. */
const HELP_SHOWN = 'commander.help'

/** Returns the command path that `argv` names, for a hint. */
function commandNamedBy(argv: readonly string[], program: Command): string {
  let command = program
  let path = program.name()
  for (const word of argv) {
    const next = command.commands.find((candidate) => candidate.name() === word)
    if (next === undefined) break
    command = next
    path += ` ${word}`
  }
  return path
}

/** Adds the nearest of the allowed values. */
function withNearest(message: string): string {
  const [, given, allowed] = /'([^']*)' is invalid.*Allowed choices are (.*)\.$/.exec(message) ?? []
  const nearest = given && allowed ? didYouMean(given, allowed.split(', ')) : undefined
  return nearest === undefined ? message : `${message.replace(/\.$/, '')}; ${nearest}`
}

/** Returns commander's error message without option values, which may be secrets. */
function complaint(error: CommanderError): string {
  const message = withNearest(error.message)
  return message
    .replace(/^error: /, '')
    .replaceAll('\n', ' ')
    .replace(/(?<!'--[\w-]+ <[\w-]+)=[^']*'/g, "'")
    .replace(/'([^']*)'/g, (quoted, text: string) =>
      text.length > MAX_ECHO_CHARACTERS ? "'…'" : quoted,
    )
}

/** Runs the command that `argv` names. Returns its exit code. Throws what is not a {@link Failure}: a fault of this program. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  const json = argv.includes('--json')
  const program = createProgram()
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return typeof process.exitCode === 'number' ? process.exitCode : 0
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0
      const mistake = complaint(error)
      const see = mistake.endsWith('.') ? ' See' : '; see'
      const hint = json ? '' : `${see} ${commandNamedBy(argv, program)} --help`
      if (error.code !== HELP_SHOWN) printFailure(usage(mistake + hint), json)
      return USAGE
    }
    if (!(error instanceof Failure)) throw error
    printFailure(error, json)
    return error.exitCode
  }
}
