/** `portcullis revoke` and `portcullis revocations`: create, list and delete revocations. */
import { Argument, type Command } from 'commander'
import { id, textOf } from '../arguments.ts'
import {
  type CommonOptions,
  onlineCommand,
  type PageOptions,
  paged,
  pageQuery,
  workWith,
} from '../command.ts'
import { decodeToken } from '../decode.ts'
import { usage } from '../failure.ts'

const KINDS = ['token', 'session', 'subject', 'client', 'tenant']

interface RevokeOptions extends CommonOptions {
  readonly issuer?: string
  readonly reason?: string
}

interface RevocationPage {
  readonly revocations: readonly object[]
  readonly cursor?: string
}

const COLUMNS = ['id', 'kind', 'value', 'issuer', 'reason', 'createdAt', 'createdBy', 'expiresAt']

export function addRevocationCommands(program: Command): void {
  addRevoke(program)
  const revocations = program.command('revocations').description('what was taken away')
  paged(
    onlineCommand(revocations, {
      name: 'list',
      does: 'list revocations in force, newest first',
      examples: ['portcullis revocations list', 'portcullis revocations list --json --limit 200'],
    }),
  ).action(async (options: CommonOptions & PageOptions) => {
    const { gateway, output } = workWith(options)
    const page = await gateway.get<RevocationPage>('/revocations', pageQuery(options))
    output.list(page, page.revocations, COLUMNS, 'revocations')
  })
  onlineCommand(revocations, {
    name: 'delete',
    does: 'take a revocation back: what it ended is good again',
    examples: ['portcullis revocations delete 0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c'],
  })
    .argument('<id>', 'as `revocations list` tells it', id)
    .action(async (revocation: string, options: CommonOptions) => {
      const { gateway, output } = workWith(options)
      await gateway.delete(`/revocations/${revocation}`)
      output.result({}, `Revocation ${revocation} is taken back.`)
    })
}

function addRevoke(program: Command): void {
  onlineCommand(program, {
    name: 'revoke',
    does: 'end one token, or every token that was issued to someone up to now',
    examples: [
      'portcullis revoke subject alice --reason "laptop stolen"',
      'portcullis revoke token 0b0c0f0e-8d4a-4b6c-9f6e-2a1b3c4d5e6f',
      'portcullis revoke token - < token.txt',
    ],
  })
    .addArgument(new Argument('<kind>', 'what ends').choices(KINDS))
    .argument('<value>', 'whose: a subject, client, tenant or sid; of a token, its jti or the JWT')
    .option('--issuer <issuer>', 'who vouches for it (default: all issuers, or that of the JWT)')
    .option('--reason <text>', 'why, for the list of revocations')
    .action(async (kind: string, argument: string, options: RevokeOptions) => {
      const { gateway, output } = workWith(options)
      const { value, issuer }: TokenName =
        kind === 'token' ? tokenNamedBy(await textOf(argument)) : { value: argument }
      const answer = await gateway.post<object>('/revocations', {
        kind,
        value,
        issuer: options.issuer ?? issuer,
        reason: options.reason,
      })
      output.thing(answer)
    })
}

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
    throw usage('the token has no jti and iss to revoke it by; revoke its subject instead')
  }
  return { value: jti, issuer: iss }
}
