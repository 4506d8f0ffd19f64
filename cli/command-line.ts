/** Carries out one call of the command line. */
import { CommanderError, type CommandUnknownOpts } from '@commander-js/extra-typings'
import { didYouMean } from '../src/suggestions/did-you-mean.ts'
import { Failure, USAGE, usage } from './failure.ts'
import { printFailure } from './output.ts'
import { createProgram } from './program.ts'

/** Longer quoted text may be a misplaced credential, and is not repeated. */
const MAX_ECHO_CHARACTERS = 24
/** Commander's code for the help that it prints when a subcommand is missing. */
const HELP_SHOWN = 'commander.help'

/** Returns the command that `argv` names, its path, and the words that follow. */
function commandNamedBy(argv: readonly string[], program: CommandUnknownOpts) {
  let command = program
  let path = program.name()
  for (const [at, word] of argv.entries()) {
    const next = command.commands.find((candidate) => candidate.name() === word)
    if (next === undefined) return { command, path, rest: argv.slice(at) }
    command = next
    path += ` ${word}`
  }
  return { command, path, rest: [] }
}

/** Throws the error of an unknown command where commander would print the help of its parent: `limits set --help`. */
function refuseHelpOfNothing(argv: readonly string[], program: CommandUnknownOpts): void {
  if (!argv.includes('--help') && !argv.includes('-h')) return
  const { command, rest } = commandNamedBy(argv, program)
  const [word] = rest
  if (word === undefined || word.startsWith('-') || word === 'help') return
  const names = command.commands.map((candidate) => candidate.name())
  if (names.length === 0 || command.registeredArguments.length > 0) return
  const nearest = didYouMean(word, names)
  const advice = nearest === undefined ? '' : ` (${nearest})`
  command.error(`error: unknown command '${word}'${advice}`, { code: 'commander.unknownCommand' })
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

/** Runs the command that `given` names. Returns its exit code. Throws what is not a {@link Failure}: a fault of this program. */
export async function runCommandLine(given: readonly string[]): Promise<number> {
  // Commander's own `help limits override` shows the help of `limits`.
  const argv = given[0] === 'help' ? [...given.slice(1), '--help'] : given
  const json = argv.includes('--json')
  const program = createProgram()
  try {
    refuseHelpOfNothing(argv, program)
    await program.parseAsync([...argv], { from: 'user' })
    return typeof process.exitCode === 'number' ? process.exitCode : 0
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0
      const mistake = complaint(error)
      const see = mistake.endsWith('.') ? ' See' : '; see'
      const hint = json ? '' : `${see} ${commandNamedBy(argv, program).path} --help`
      if (error.code !== HELP_SHOWN) printFailure(usage(mistake + hint), json)
      return USAGE
    }
    if (!(error instanceof Failure)) throw error
    printFailure(error, json)
    return error.exitCode
  }
}
