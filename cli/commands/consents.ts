/** `portcullis consents`: lists and withdraws what a user has allowed clients to do. */
import type { Command } from '@commander-js/extra-typings'
import { onlineCommand, workWith } from '../command.ts'
import { Failure, REFUSED } from '../failure.ts'

interface ConsentPage {
  readonly cursor?: string
  readonly consents: readonly object[]
}

const COLUMNS = ['client', 'name', 'scopes', 'redirectUri', 'issuer', 'allowedAt']
const NO_CONSENTS =
  'the gateway has no consents: its policy needs authorizationCode() in its features; ' +
  "import { authorizationCode } from 'portcullis/authorization-code'"

export function addConsentCommands(program: Command): void {
  const consents = program
    .command('consents')
    .description('what users have allowed clients to do on the consent page')
  ofUser(
    onlineCommand(consents, {
      name: 'list',
      does: 'list what a user has allowed clients to do',
      examples: [
        'portcullis consents list --subject alice',
        'portcullis consents list --subject alice --json',
      ],
    }),
  ).action(async ({ subject, issuer, tenant, ...options }) => {
    const { gateway, output } = workWith(options)
    const page = await gateway
      .get<ConsentPage>('/consents', { subject, issuer, tenant })
      .catch((error: unknown) => {
        // A user without consents has an empty list.
        const isAbsent = error instanceof Failure && error.code === 'not_found'
        throw isAbsent ? new Failure(REFUSED, 'not_found', NO_CONSENTS, error) : error
      })
    output.list(page, page.consents, COLUMNS, 'consents')
  })
  ofUser(
    onlineCommand(consents, {
      name: 'revoke',
      does: 'withdraw what a user has allowed a client to do, and end its sessions for this user',
      examples: [
        'portcullis consents revoke --subject alice --client https://app.example.com/client.json',
      ],
    }),
  )
    .requiredOption('--client <id>', 'id of the client, from `consents list`')
    .action(async ({ subject, issuer, tenant, client, ...options }) => {
      const { gateway, output } = workWith(options)
      await gateway.post('/consents/withdrawals', { client, subject, issuer, tenant })
      output.result({}, `The consent of ${subject} for ${client} is withdrawn.`)
    })
}

const ofUser = (command: ReturnType<typeof onlineCommand>) =>
  command
    .requiredOption('--subject <subject>', 'the user')
    .option('--issuer <issuer>', 'issuer that vouches for the subject (default: all issuers)')
    .option('--tenant <tenant>', 'tenant of the user (default: consents that name no tenant)')
