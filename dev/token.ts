/** `npm run -s token`: prints one access token that the local gateway accepts, and nothing else. */
import { parseArgs } from 'node:util'
import type { AccessTokenRequest } from './start/access-token.ts'
import { localToken } from './start/local-token.ts'
import { ROOT } from './start/settings.ts'

const USAGE = `npm run -s token -- --subject <subject> [options]

  --subject <subject>  subject of the token
  --role <role>        a role; repeatable
  --scope <scope>      scopes, separated by spaces
  --client <id>        client_id (default: dev)
  --tenant <tenant>    tenant
  --sid <session>      session
  --jti <id>           token id (default: a random UUID)
  --ttl <time>         90s, 15m, 1h or 2d (default: 1h)
  --help

The token is signed with the active key of SIGNING_KEYS; issuer and audience are PUBLIC_URL. Both are read
from the environment, or else from .dev.vars, which \`npm start\` writes.`

const UNIT_SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const
const DEFAULT_TTL = '1h'
const DEFAULT_CLIENT = 'dev'

/** Parses the arguments. Throws an `Error` of one line if they are invalid. */
function readRequest(argv: readonly string[]): AccessTokenRequest | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      subject: { type: 'string' },
      // Its earlier name.
      sub: { type: 'string' },
      role: { type: 'string', multiple: true },
      scope: { type: 'string' },
      client: { type: 'string' },
      tenant: { type: 'string' },
      sid: { type: 'string' },
      jti: { type: 'string' },
      ttl: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help'
  for (const [name, value] of Object.entries(values)) {
    if ([value].flat().includes('')) throw new Error(`--${name} must not be empty`)
  }
  const subject = values.subject ?? values.sub
  if (subject === undefined) throw new Error('--subject is missing')
  return {
    subject,
    client: values.client ?? DEFAULT_CLIENT,
    roles: values.role ?? [],
    scope: values.scope,
    tenant: values.tenant,
    session: values.sid,
    tokenId: values.jti,
    ttlSeconds: seconds(values.ttl ?? DEFAULT_TTL),
  }
}

function seconds(time: string): number {
  const [, count, unit] = /^([1-9]\d{0,8})([smhd])$/.exec(time) ?? []
  if (count === undefined) throw new Error('--ttl must look like 90s, 15m, 1h or 2d')
  return Number(count) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS]
}

function requestOrExit(): AccessTokenRequest | 'help' {
  try {
    return readRequest(process.argv.slice(2))
  } catch (error) {
    const [problem] = (error as Error).message.split('\n')
    console.error(`token: ${problem}\nSee: npm run -s token -- --help`)
    process.exit(2)
  }
}

const request = requestOrExit()
if (request === 'help') {
  console.log(USAGE)
} else {
  try {
    console.log(await localToken(request, ROOT, process.env))
  } catch (error) {
    console.error(`token: ${(error as Error).message}`)
    process.exit(1)
  }
}
