/** `portcullis api-keys`: manages API keys, for programs that cannot request tokens. */
import type { Command } from '@commander-js/extra-typings'
import { entry, keyId, repeated, seconds, secondsOrNever, textOf } from '../arguments.ts'
import { onlineCommand, workWith } from '../command.ts'
import { usage } from '../failure.ts'
import { addListing, addRemoval } from '../records.ts'

const COLUMNS = [
  'id',
  'prefix',
  'name',
  'subject',
  'roles',
  'scopes',
  'tenant',
  'plan',
  'status',
  'expiresAt',
  'endedAt',
  'lastUsedAt',
]
const EXAMPLE_ID = '7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c'
const ID = 'id of the key, from `api-keys list`'

export function addApiKeyCommands(program: Command): void {
  const keys = program
    .command('api-keys')
    .description('credentials for programs that cannot request tokens')
  addCreate(keys)
  addListing(keys, {
    does: 'list API keys, newest first, without the keys themselves; also those that have ended',
    examples: [
      'portcullis api-keys list',
      'portcullis api-keys list --tenant acme --status revoked',
    ],
    path: '/api-keys',
    member: 'apiKeys',
    columns: COLUMNS,
    what: 'API keys',
    filters: {
      tenant: 'tenant of the keys',
      subject: 'subject of the keys',
      reference: 'entry `reference` of their metadata',
      status: 'active, expired or revoked',
    },
  })
  onlineCommand(keys, {
    name: 'show',
    does: 'show a key with its metadata and its last use, without the key itself',
    examples: [`portcullis api-keys show ${EXAMPLE_ID}`],
  })
    .argument('<id>', ID, keyId)
    .action(async (key, options) => {
      const { gateway, output } = workWith(options)
      output.thing(await gateway.get<object>(`/api-keys/${key}`))
    })
  onlineCommand(keys, {
    name: 'lookup',
    does: 'find the id of a key that was found somewhere, in order to revoke it',
    examples: ['portcullis api-keys lookup - < key.txt'],
  })
    .argument('<key>', 'the API key; - reads it from the standard input')
    .action(async (argument, options) => {
      const { gateway, output } = workWith(options)
      const apiKey = await textOf(argument)
      output.thing(await gateway.post<object>('/api-key-lookups', { apiKey }))
    })
  addUpdate(keys)
  onlineCommand(keys, {
    name: 'rotate',
    does: 'replace a key with a new one; it is printed and not stored',
    examples: [
      `portcullis api-keys rotate ${EXAMPLE_ID} --grace 1h`,
      `portcullis api-keys rotate ${EXAMPLE_ID}`,
    ],
  })
    .argument('<id>', ID, keyId)
    .option(
      '--grace <time>',
      'time for which old keys stay valid, 5m to 1d (default: 0, they end at once)',
      seconds,
    )
    .action(async (key, options) => {
      const { gateway, output } = workWith(options)
      const body = { graceSeconds: options.grace }
      output.once(await gateway.post<object>(`/api-keys/${key}/secret`, body), 'apiKey')
    })
  addRemoval(keys, {
    name: 'revoke',
    does: 'revoke a key, at once and at every gateway',
    examples: [`portcullis api-keys revoke ${EXAMPLE_ID}`],
    path: '/api-keys',
    argument: ID,
    parse: keyId,
    endsAccess: true,
    done: (key) => `API key ${key} is revoked.`,
  })
}

function addCreate(keys: Command): void {
  onlineCommand(keys, {
    name: 'create',
    does: 'create an API key; it is printed and not stored',
    examples: [
      'portcullis api-keys create --name nightly --subject reports --role reader --expires-in 90d',
      'portcullis api-keys create --name nightly --subject reports --metadata team=billing',
    ],
  })
    .requiredOption('--name <name>', 'name of the key in the list')
    .requiredOption('--subject <subject>', 'subject that the key identifies')
    .option('--role <role>', 'a role; repeatable', repeated)
    .option('--scope <scope>', 'a scope; repeatable', repeated)
    .option('--tenant <tenant>', 'tenant')
    .option('--expires-in <time>', 'lifetime: 90d (default: until it is revoked)', seconds)
    .option('--metadata <name=value>', 'a note for operators; repeatable, at most 16', entry)
    .option('--plan <plan>', 'a plan of the policy')
    .action(async ({ role: roles, scope: scopes, expiresIn: expiresInSeconds, ...options }) => {
      const { gateway, output } = workWith(options)
      const { name, subject, tenant, metadata, plan } = options
      const key = { name, subject, roles, scopes, tenant, expiresInSeconds, metadata, plan }
      output.once(await gateway.post<object>('/api-keys', key), 'apiKey')
    })
}

function addUpdate(keys: Command): void {
  onlineCommand(keys, {
    name: 'update',
    does: 'change the name, metadata, plan or expiry of a key; the key itself stays the same',
    examples: [
      `portcullis api-keys update ${EXAMPLE_ID} --metadata team=billing --metadata env=prod`,
      `portcullis api-keys update ${EXAMPLE_ID} --plan pro --expires-in 30d`,
    ],
  })
    .argument('<id>', ID, keyId)
    .option('--name <name>', 'another name')
    .option('--metadata <name=value>', 'replaces all notes; repeatable, at most 16', entry)
    .option('--no-metadata', 'removes all notes')
    .option('--plan <plan>', 'a plan of the policy')
    .option('--no-plan', 'removes the plan of the key')
    .option('--expires-in <time>', 'lifetime from now, at least 5m, or never', secondsOrNever)
    .action(async (key, options) => {
      const body = {
        name: options.name,
        metadata: options.metadata === false ? {} : options.metadata,
        plan: options.plan === false ? null : options.plan,
        expiresInSeconds: options.expiresIn === 'never' ? null : options.expiresIn,
      }
      if (Object.values(body).every((value) => value === undefined))
        throw usage('nothing to change: use at least one option; see --help')
      const { gateway, output } = workWith(options)
      output.thing(await gateway.patch<object>(`/api-keys/${key}`, body))
    })
}
