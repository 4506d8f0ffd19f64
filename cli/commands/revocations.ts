/** `portcullis revoke` and `portcullis revocations`: create, list and delete revocations. */
import { Argument, type Command } from '@commander-js/extra-typings'
import { textOf } from '../arguments.ts'
import { onlineCommand, workWith } from '../command.ts'
import { decodeToken } from '../decode.ts'
import { usage } from '../failure.ts'
import { addListing, addRemoval, waitOption } from '../records.ts'
import { record } from '../text.ts'

const KINDS = ['token', 'session', 'subject', 'client', 'tenant']

const COLUMNS = [
  'id',
  'kind',
  'value',
  'issuer',
  'tenant',
  'owner',
  'reason',
  'createdAt',
  'createdBy',
  'expiresAt',
]

export function addRevocationCommands(program: Command): void {
  addRevoke(program)
  const revocations = program
    .command('revocations')
    .description('revoked tokens, subjects, clients, sessions and tenants')
  addListing(revocations, {
    does: 'list active revocations, newest first',
    examples: ['portcullis revocations list', 'portcullis revocations list --json --limit 200'],
    path: '/revocations',
    member: 'revocations',
    columns: COLUMNS,
    what: 'revocations',
  })
  addRemoval(revocations, {
    name: 'delete',
    does: 'remove a revocation: the tokens that it revoked are valid again',
    examples: ['portcullis revocations delete 0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c'],
    path: '/revocations',
    argument: 'id of the revocation, from `revocations list`',
    done: (revocation) => `Revocation ${revocation} is removed.`,
  })
}

function addRevoke(program: Command): void {
  onlineCommand(program, {
    name: 'revoke',
    does: 'revoke one token, or every token that was issued until now to a subject, client, session or tenant',
    examples: [
      'portcullis revoke subject alice --reason "laptop stolen"',
      'portcullis revoke token 0b0c0f0e-8d4a-4b6c-9f6e-2a1b3c4d5e6f',
      'portcullis revoke token - < token.txt',
      'portcullis revoke tenant acme --wait everywhere',
    ],
  })
    .addArgument(new Argument('<kind>', 'kind of revocation').choices(KINDS))
    .argument('<value>', 'subject, client, tenant or sid; for a token its jti or the JWT')
    .option('--issuer <issuer>', 'issuer (default: all issuers, or that of the JWT)')
    .option('--tenant <tenant>', 'only what members of this tenant hold (default: all of it)')
    .option('--reason <text>', 'reason, for the list of revocations')
    .addOption(waitOption())
    .action(async (kind, argument, options) => {
      const { gateway, output } = workWith(options)
      const named: TokenName =
        kind === 'token' ? tokenNamedBy(await textOf(argument)) : { value: argument }
      const { issuer = named.issuer, tenant, reason, wait } = options
      const order = { kind, value: named.value, issuer, tenant, reason }
      const { earlier, ...answer } = await gateway.post<Revoked>('/revocations', order, { wait })
      output.result({ ...answer, earlier }, record(answer, output.style))
      if (earlier) output.remark(againText(earlier.until, answer.createdAt))
    })
}

interface Revoked {
  readonly createdAt: string
  /** An earlier revocation of the same. Null: none. Absent: not known, or a gateway of an earlier version. */
  readonly earlier?: { readonly until: string | null } | null
}

/** Null: a single token, which a second revocation does not change. */
const againText = (until: string | null, createdAt: string): string =>
  until === null
    ? 'The token was already revoked.'
    : `Already revoked until ${until}, now until ${createdAt}: what is issued later is accepted.`

interface TokenName {
  readonly value: string
  readonly issuer?: string
}

/**
 * Reads `jti` and `iss` from a JWT. Does NOT verify the token: the revocation of an invalid token
 * does no harm.
 */
function tokenNamedBy(text: string): TokenName {
  if (!text.includes('.')) return { value: text }
  const { jti, iss } = decodeToken(text)?.claims ?? {}
  if (typeof jti !== 'string' || typeof iss !== 'string') {
    throw usage(
      'the token has no jti and iss, so it cannot be revoked alone; revoke its subject instead',
    )
  }
  return { value: jti, issuer: iss }
}
