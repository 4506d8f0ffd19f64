/** `portcullis clients`: manages the OAuth clients that may request tokens from the gateway. */
import type { Command } from 'commander'
import { id, seconds } from '../arguments.ts'
import {
  type CommonOptions,
  onlineCommand,
  type PageOptions,
  paged,
  pageQuery,
  workWith,
} from '../command.ts'
import { addCreateClient } from './create-client.ts'
import { addHashSecret } from './hash-secret.ts'

interface RotateOptions extends CommonOptions {
  readonly grace?: number
}

interface ClientPage {
  readonly clients: readonly object[]
  readonly cursor?: string
}

const COLUMNS = ['clientId', 'name', 'grants', 'scopes', 'roles', 'tenant', 'disabled', 'createdAt']
const EXAMPLE_ID = '7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c'
const WHICH = ['<id>', 'as `clients list` tells it', id] as const

export function addClientCommands(program: Command): void {
  const clients = program
    .command('clients')
    .description('the programs that may ask the gateway for tokens')
  addCreateClient(clients)
  paged(
    onlineCommand(clients, {
      name: 'list',
      does: 'list clients, newest first, without their secrets',
      examples: ['portcullis clients list', 'portcullis clients list --json'],
    }),
  ).action(async (options: CommonOptions & PageOptions) => {
    const { gateway, output } = workWith(options)
    const page = await gateway.get<ClientPage>('/clients', pageQuery(options))
    output.list(page, page.clients, COLUMNS, 'clients')
  })
  onlineCommand(clients, {
    name: 'show',
    does: 'show all that is known of a client, but no secret',
    examples: [`portcullis clients show ${EXAMPLE_ID}`],
  })
    .argument(...WHICH)
    .action(async (client: string, options: CommonOptions) => {
      const { gateway, output } = workWith(options)
      output.thing(await gateway.get<object>(`/clients/${client}`))
    })
  onlineCommand(clients, {
    name: 'rotate-secret',
    does: 'make a new secret for a client; it is printed and kept nowhere',
    examples: [`portcullis clients rotate-secret ${EXAMPLE_ID} --grace 1h`],
  })
    .argument(...WHICH)
    .option(
      '--grace <time>',
      'how long the old one goes on, at most 1d (default: not at all)',
      seconds,
    )
    .action(async (client: string, options: RotateOptions) => {
      const { gateway, output } = workWith(options)
      const body = { graceSeconds: options.grace }
      output.thing(await gateway.post<object>(`/clients/${client}/secret`, body))
      output.remark('The secret is shown once, and kept nowhere.')
    })
  onlineCommand(clients, {
    name: 'disable',
    does: 'end a client: no new tokens, and those that it has are dead',
    examples: [`portcullis clients disable ${EXAMPLE_ID}`],
  })
    .argument(...WHICH)
    .action(async (client: string, options: CommonOptions) => {
      const { gateway, output } = workWith(options)
      await gateway.delete(`/clients/${client}`)
      output.result({}, `Client ${client} is disabled, and so is every token that it has.`)
    })
  addHashSecret(clients)
}
