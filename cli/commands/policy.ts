/** `portcullis policy`: checks the policy of a project before it is deployed. */
import type { Command } from 'commander'
import { repeated, whole } from '../arguments.ts'
import { offlineCommand } from '../command.ts'
import type { CheckOptions } from '../policy/check.ts'

const CHECK_HELP = `
Loads the policy, with the packages of the project, and lists all mistakes with their places. If there are
none, it lists what is valid, but probably not meant. It makes no call and needs no environment. The
default file is portcullis.config.ts, or .js. A policy in TypeScript needs Node 22.18.

A comment above a route silences a rule there:
  // portcullis-ignore unlimited-route: the origin limits it

Exit codes: 0 no errors, 1 errors, or more warnings than --max-warnings, 2 wrong usage, or a file that
cannot be loaded.`

const FILE = 'the policy (default: portcullis.config.ts, or .js)'

export function addPolicyCommands(program: Command): void {
  const policy = program.command('policy').description('examines the policy of this project')
  offlineCommand(policy, {
    name: 'check',
    does: 'list the mistakes in the policy, and what was probably not meant',
    examples: [
      'portcullis policy check',
      'portcullis policy check examples/books/policy.ts --ignore unlimited-route --max-warnings 0',
      'portcullis policy check --sarif > policy.sarif',
    ],
  })
    .argument('[file]', FILE)
    .option('--sarif', 'print SARIF 2.1.0, for code review')
    .option('--ignore <rule>', 'silence a rule; repeatable', repeated)
    .option('--max-warnings <count>', 'largest number of warnings that is no failure', whole)
    .addHelpText('after', CHECK_HELP)
    .action(async (file: string | undefined, options: CheckOptions) => {
      const { checkPolicy } = await import('../policy/check.ts')
      await checkPolicy(file, options, process.cwd())
    })
}
