/** `portcullis apikeys`: manages API keys, for programs that cannot request tokens. */
import type { Command } from 'commander'
import { id, repeated, seconds } from '../arguments.ts'
import {
  type CommonOptions,
  onlineCommand,
  type PageOptions,
  paged,
  pageQuery,
  workWith,
} from '../command.ts'

interface CreateOptions extends CommonOptions {
  readonly name: string
  readonly subject: string
  readonly role?: readonly string[]
  readonly scope?: readonly string[]
  readonly tenant?: string
  readonly expiresIn?: number
}

interface RotateOptions extends CommonOptions {
  readonly grace?: number
}

interface ApiKeyPage {
  readonly apiKeys: readonly object[]
  readonly cursor?: string
}

const COLUMNS = ['id', 'name', 'subject', 'roles', 'scopes', 'tenant', 'createdAt', 'expiresAt']
const SHOWN_ONCE = 'The key is shown once and not stored.'
const EXAMPLE_ID = '7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c'
const WHICH = ['<id>', 'id of the key, from `apikeys list`', id] as const

export function addApiKeyCommands(program: Command): void {
  const keys = program
    .command('apikeys')
    .description('credentials for programs that cannot request tokens')
  addCreate(keys)
  paged(
    onlineCommand(keys, {
      name: 'list',
      does: 'list API keys, newest first, without the keys themselves',
      examples: ['portcullis apikeys list'],
    }),
  ).action(async (options: CommonOptions & PageOptions) => {
    const { gateway, output } = workWith(options)
    const page = await gateway.get<ApiKeyPage>('/api-keys', pageQuery(options))
    output.list(page, page.apiKeys, COLUMNS, 'API keys')
  })
  onlineCommand(keys, {
    name: 'rotate',
    does: 'replace a key with a new one; it is printed and not stored',
    examples: [
      `portcullis apikeys rotate ${EXAMPLE_ID} --grace 1h`,
      `portcullis apikeys rotate ${EXAMPLE_ID}`,
    ],
  })
    .argument(...WHICH)
    .option(
      '--grace <time>',
      'time for which old keys stay valid, 5m to 1d (default: 0, they end at once)',
      seconds,
    )
    .action(async (key: string, options: RotateOptions) => {
      const { gateway, output } = workWith(options)
      const body = { graceSeconds: options.grace }
      output.thing(await gateway.post<object>(`/api-keys/${key}/secret`, body))
      output.remark(SHOWN_ONCE)
    })
  onlineCommand(keys, {
    name: 'disable',
    does: 'revoke a key, at once and at every gateway',
    examples: [`portcullis apikeys disable ${EXAMPLE_ID}`],
  })
    .argument(...WHICH)
    .action(async (key: string, options: CommonOptions) => {
      const { gateway, output } = workWith(options)
      await gateway.delete(`/api-keys/${key}`)
      output.result({}, `API key ${key} is revoked.`)
    })
}

function addCreate(keys: Command): void {
  onlineCommand(keys, {
    name: 'create',
    does: 'create an API key; it is printed and not stored',
    examples: [
      'portcullis apikeys create --name nightly --subject reports --role reader --expires-in 90d',
    ],
  })
    .requiredOption('--name <name>', 'name of the key in the list')
    .requiredOption('--subject <subject>', 'subject that the key identifies')
    .option('--role <role>', 'a role; repeatable', repeated)
    .option('--scope <scope>', 'a scope; repeatable', repeated)
    .option('--tenant <tenant>', 'tenant')
    .option('--expires-in <time>', 'lifetime: 90d (default: until it is disabled)', seconds)
    .action(async (options: CreateOptions) => {
      const { gateway, output } = workWith(options)
      const answer = await gateway.post<object>('/api-keys', {
        name: options.name,
        subject: options.subject,
        roles: options.role,
        scopes: options.scope,
        tenant: options.tenant,
        expiresInSeconds: options.expiresIn,
      })
      output.thing(answer)
      output.remark(SHOWN_ONCE)
    })
}
