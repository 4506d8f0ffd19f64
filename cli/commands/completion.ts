/** `portcullis completion`: prints the script that completes commands and options in a shell. */
import { Argument, Command } from '@commander-js/extra-typings'
import { bashScript } from '../completion/bash.ts'
import { addValues } from '../completion/values.ts'

const HELP = `
Put the line into the start file of your shell (~/.bashrc, ~/.zshrc, ~/.config/fish/config.fish):
  bash: source <(portcullis completion bash)
  zsh:  source <(portcullis completion zsh)
  fish: portcullis completion fish | source

If the command line is installed in a project only, define this before, in bash and zsh:
  portcullis() { npx --no-install portcullis "$@"; }

Examples:
  portcullis completion bash`

const SHELLS = ['bash', 'zsh', 'fish'] as const
/** The command that the scripts call. Its name is part of the protocol of `@bomb.sh/tab`. */
const SUGGEST = 'complete'
const ADDED = 'complete-script'

export function addCompletionCommands(program: Command): void {
  const name = program.name()
  program
    .command('completion')
    .description('print the script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText('after', HELP)
    .action(async (shell) => {
      const { script } = await import('@bomb.sh/tab')
      if (shell === 'bash') process.stdout.write(bashScript(name))
      else script(shell, name, name)
    })
  program
    .command(SUGGEST, { hidden: true })
    .argument('[words...]')
    .action((words) => suggest(program, words))
}

/** Prints the suggestions for the last of `words`, which may be empty. */
async function suggest(program: Command, words: string[]): Promise<void> {
  const { default: addSuggestions } = await import('@bomb.sh/tab/commander')
  // The library adds its own two commands to the program that it reads, so it gets a copy.
  const copy = new Command(program.name())
  for (const command of program.commands) if (command.name() !== SUGGEST) copy.addCommand(command)
  await addValues(copy, words)
  const suggestions = addSuggestions(copy as Parameters<typeof addSuggestions>[0], {
    completionCommandName: ADDED,
  })
  suggestions.commands.delete(ADDED)
  suggestions.parse(words)
}
