/** `portcullis token`: signs, mints, verifies and decodes access tokens. */
import type { Command } from '@commander-js/extra-typings'
import { repeated, seconds, textOf } from '../arguments.ts'
import { alias, offlineCommand, onlineCommand, workWith } from '../command.ts'
import { decodeToken } from '../decode.ts'
import { REFUSED, refused } from '../failure.ts'
import { createOutput } from '../output.ts'
import { record } from '../text.ts'
import { addSign } from './token-sign.ts'

interface MintedToken {
  readonly token: string
  readonly tokenId: string
  readonly expiresAt: string
}

const HELP = '\nUse - to read the token from standard input: arguments are visible to other users.'

export function addTokenCommands(program: Command): void {
  const token = program.command('token').description('create, verify and decode access tokens')
  addSign(token)
  addMint(token)
  addVerify(token)
  addDecode(token)
}

function addMint(token: Command): void {
  const command = onlineCommand(token, {
    name: 'mint',
    does: 'create an access token for a subject; it is printed and not stored',
    examples: [
      'portcullis token mint --subject alice --role reader --ttl 15m',
      'TOKEN=$(portcullis token mint --subject job-7 --scope orders:read --format opaque)',
    ],
  })
    .requiredOption('--subject <subject>', 'subject of the token')
    .option('--role <role>', 'a role; repeatable', repeated)
    .option('--scope <scope>', 'a scope; repeatable', repeated)
    .option('--tenant <tenant>', 'tenant')
    .option('--client <id>', 'the client that the token names')
    .option('--ttl <time>', 'lifetime, 5m to 1h', seconds)
    .option('--format <format>', 'jwt or opaque')
    .action(async ({ role: roles, scope: scopes, ttl: ttlSeconds, ...options }) => {
      const { gateway, output } = workWith(options)
      const { subject, tenant, client, format } = options
      const order = { subject, roles, scopes, tenant, client, ttlSeconds, format }
      const answer = await gateway.post<MintedToken>('/tokens', order)
      output.result(answer, answer.token)
      output.remark(`Token ${answer.tokenId}, until ${answer.expiresAt}. It is shown once.`)
    })
  alias(command, 'sub', 'subject')
}

function addVerify(token: Command): void {
  onlineCommand(token, {
    name: 'verify',
    does: 'check at the gateway whether a token is valid now; exit code 1 if it is not',
    examples: [
      'portcullis token verify - < token.txt',
      'portcullis token verify --json - < token.txt',
    ],
  })
    .argument('<token>')
    .addHelpText('after', HELP)
    .action(async (argument, options) => {
      const { gateway, output } = workWith(options)
      const answer = await gateway.introspect(await textOf(argument))
      if (answer.active === true) output.thing(answer)
      else {
        output.result(answer, 'active  no')
        output.remark(
          'The token is malformed, expired or revoked, or this client may not introspect it.',
        )
        process.exitCode = REFUSED
      }
    })
}

function addDecode(token: Command): void {
  offlineCommand(token, {
    name: 'decode',
    does: 'decode a JWT, offline and without verification',
    examples: ['portcullis token decode - < token.txt'],
  })
    .argument('<token>')
    .addHelpText('after', HELP)
    .action(async (argument, options) => {
      const decoded = decodeToken(await textOf(argument))
      const output = createOutput(options.json ?? false)
      if (decoded === undefined) {
        throw refused('not_a_jwt', 'the token is not a JWT; only the gateway can read it')
      }
      const { header, claims } = decoded
      const text = [
        'NOT VERIFIED: the signature was not checked. `portcullis token verify` queries the gateway.',
        `\nheader\n${record(header, output.style)}`,
        `\nclaims\n${record(withTimes(claims), output.style)}`,
      ]
      output.result({ verified: false, header, claims }, text.join('\n'))
    })
}

const TIMES = ['exp', 'nbf', 'iat', 'auth_time']

/** Returns the claims with an RFC 3339 time beside each numeric time. */
function withTimes(claims: object): object {
  return Object.fromEntries(
    Object.entries(claims).map(([name, value]) => {
      const at = TIMES.includes(name) ? new Date(Number(value) * 1_000) : undefined
      return at === undefined || Number.isNaN(at.getTime())
        ? [name, value]
        : [name, `${value} (${at.toISOString()})`]
    }),
  )
}
