/** `portcullis clients`: manages the OAuth clients that may request tokens from the gateway. */
import type { Command } from '@commander-js/extra-typings'
import { id, seconds } from '../arguments.ts'
import { onlineCommand, workWith } from '../command.ts'
import { addListing, addRemoval } from '../records.ts'
import { addCreateClient } from './create-client.ts'
import { addHashSecret } from './hash-secret.ts'

const COLUMNS = ['clientId', 'name', 'grants', 'scopes', 'roles', 'tenant', 'disabled', 'createdAt']
const EXAMPLE_ID = '7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c'
const WHICH = ['<id>', 'id of the client, from `clients list`', id] as const

export function addClientCommands(program: Command): void {
  const clients = program
    .command('clients')
    .description('programs that may request tokens from the gateway')
  addCreateClient(clients)
  addListing(clients, {
    does: 'list clients, newest first, without their secrets',
    examples: ['portcullis clients list', 'portcullis clients list --json'],
    path: '/clients',
    member: 'clients',
    columns: COLUMNS,
    what: 'clients',
  })
  onlineCommand(clients, {
    name: 'show',
    does: 'show a client without its secrets',
    examples: [`portcullis clients show ${EXAMPLE_ID}`],
  })
    .argument(...WHICH)
    .action(async (client, options) => {
      const { gateway, output } = workWith(options)
      output.thing(await gateway.get<object>(`/clients/${client}`))
    })
  onlineCommand(clients, {
    name: 'rotate-secret',
    does: 'create a new secret for a client; it is printed and not stored',
    examples: [`portcullis clients rotate-secret ${EXAMPLE_ID} --grace 1h`],
  })
    .argument(...WHICH)
    .option(
      '--grace <time>',
      'time for which the old secret stays valid, at most 1d (default: 0)',
      seconds,
    )
    .action(async (client, options) => {
      const { gateway, output } = workWith(options)
      const body = { graceSeconds: options.grace }
      output.once(await gateway.post<object>(`/clients/${client}/secret`, body), 'clientSecret')
    })
  addRemoval(clients, {
    name: 'disable',
    does: 'disable a client, and revoke its tokens',
    examples: [`portcullis clients disable ${EXAMPLE_ID}`],
    path: '/clients',
    argument: WHICH[1],
    endsAccess: true,
    done: (client) => `Client ${client} is disabled, and its tokens are revoked.`,
  })
  addHashSecret(clients)
}
