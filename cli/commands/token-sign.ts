/** `portcullis token`: signs an access token with the keys of the project on this machine. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from '@commander-js/extra-typings'
import { repeated, seconds } from '../arguments.ts'
import { alias, type OptionsOf, offlineCommand } from '../command.ts'
import { valuesIn } from '../deploy/values.ts'
import { refused, usage } from '../failure.ts'
import { createOutput } from '../output.ts'
import { requireProject } from '../project.ts'

/** `portcullis dev` runs a project with one of these, and writes its `.dev.vars`. */
const PROJECT_FILES = [
  ...['wrangler.toml', 'wrangler.json', 'wrangler.jsonc'],
  ...['portcullis.config.ts', 'portcullis.config.js', 'portcullis.config.mjs'],
]

const DEFAULT_TTL_SECONDS = 3_600

const SOURCES = `
The token is signed with the active key of SIGNING_KEYS; issuer and audience are PUBLIC_URL. Both are
read from the environment or from the file of --values, as \`portcullis serve\` reads them, or else from
.dev.vars, which \`portcullis dev\` writes. A gateway with other keys refuses the token.`

const signCommand = (token: Command) =>
  offlineCommand(token, {
    name: 'sign',
    isDefault: true,
    does: 'sign an access token for the gateway of this project on this machine (default command)',
    examples: [
      'portcullis token sign --subject alice --role reader',
      'TOKEN=$(portcullis token sign --subject alice --role reader --ttl 15m)',
    ],
  })
    .addHelpText('after', SOURCES)
    .requiredOption('--subject <subject>', 'subject of the token')
    .option('--role <role>', 'a role; repeatable', repeated, [])
    .option('--scope <scope>', 'scopes, separated by spaces')
    .option('--client <id>', 'client_id', 'dev')
    .option('--tenant <tenant>', 'tenant')
    .option('--sid <session>', 'session')
    .option('--jti <id>', 'token id (default: a random UUID)')
    .option('--values <file>', 'file with SIGNING_KEYS and PUBLIC_URL, as for serve')
    .option('--ttl <time>', 'lifetime: 90s, 15m, 1h or 2d (default: 1h)', seconds)

export const addSign = (token: Command): void =>
  alias(signCommand(token).action(sign), 'sub', 'subject')

async function sign(options: OptionsOf<typeof signCommand>): Promise<void> {
  for (const [name, value] of Object.entries(options)) {
    if ([value].flat().includes('')) throw usage(`--${name} must not be empty`)
  }
  const root = requireProject(process.cwd())
  const { localToken } = await import('../../dev/start/local-token.ts')
  const request = {
    subject: options.subject,
    client: options.client,
    roles: options.role,
    scope: options.scope,
    tenant: options.tenant,
    session: options.sid,
    tokenId: options.jti,
    ttlSeconds: options.ttl ?? DEFAULT_TTL_SECONDS,
  }
  const source = {
    values: options.values === undefined ? undefined : valuesIn(options.values),
    mayCreate: PROJECT_FILES.some((name) => existsSync(join(root, name))),
  }
  const token = await localToken(request, root, process.env, source).catch((error: Error) => {
    throw refused('invalid_signing_keys', error.message)
  })
  createOutput(options.json ?? false).result({ token }, token)
}
