/** `portcullis policy`: checks the policy of a project before it is deployed. */
import type { Command } from 'commander'
import { offlineCommand } from '../command.ts'
import type { CheckOptions } from '../policy/check.ts'

const CHECK_HELP = `
Loads the policy, with the packages of the project, and lists all mistakes. It makes no call and needs no
environment. The default file is portcullis.config.ts, or .js. A policy in TypeScript needs Node 22.18.

Exit codes: 0 no errors, 1 errors, 2 wrong usage.`

export function addPolicyCommands(program: Command): void {
  const policy = program.command('policy').description('checks the policy of this project')
  offlineCommand(policy, {
    name: 'check',
    does: 'list all mistakes in the policy',
    examples: [
      'portcullis policy check',
      'portcullis policy check examples/books/policy.ts --json',
    ],
  })
    .argument('[file]', 'the policy (default: portcullis.config.ts, or .js)')
    .addHelpText('after', CHECK_HELP)
    .action(async (file: string | undefined, options: CheckOptions) => {
      const { checkPolicy } = await import('../policy/check.ts')
      await checkPolicy(file, options, process.cwd())
    })
}
