/** `portcullis keys`: lists the public members of the gateway's signing keys. */
import type { Command } from 'commander'
import { type CommonOptions, onlineCommand, workWith } from '../command.ts'

interface KeyList {
  readonly keys: readonly object[]
  readonly cursor?: string
}

const MADE = `
Keys are generated and rotated in a file that you deploy, not by the gateway. In a checkout:
  npm run -s keys -- --help`
const COLUMNS = ['kid', 'alg', 'state', 'notBefore', 'expiresAt']

export function addKeyCommands(program: Command): void {
  const keys = program
    .command('keys')
    .description("the gateway's signing keys")
    .addHelpText('after', MADE)
  onlineCommand(keys, {
    name: 'list',
    does: 'list the keys and their states, without private parts',
    examples: ['portcullis keys list'],
  }).action(async (options: CommonOptions) => {
    const { gateway, output } = workWith(options)
    const answer = await gateway.get<KeyList>('/keys')
    output.list(answer, answer.keys, COLUMNS, 'signing keys')
  })
}
