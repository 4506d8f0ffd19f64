/** `portcullis login`, `logout` and `whoami`: a person as the operator. */
import type { Command } from '@commander-js/extra-typings'
import { portNumber } from '../arguments.ts'
import { type CommonOptions, type OptionsOf, offlineCommand, workWith } from '../command.ts'
import { DEFAULT_URL, gatewayUrl } from '../connection.ts'
import { Failure, REFUSED, refused, usage } from '../failure.ts'
import { type Login, loginFor } from '../login/store.ts'
import { createOutput } from '../output.ts'
import { record } from '../text.ts'

const HELP = `
The issuer is your identity provider, one of ISSUERS of the gateway. It needs a public client (no secret)
with the redirect URI http://127.0.0.1/callback and any port, or --port for a fixed one, and its access tokens must be for
the gateway, with a role that has the permissions of operators. See docs/operate.md.

Tokens are stored in ~/.config/portcullis/logins.json ($XDG_CONFIG_HOME, or %APPDATA%), which only you can read. Other
commands use them for this gateway, unless PORTCULLIS_CLIENT_ID is set. For programs, use a client with a secret instead.

Environment:
  PORTCULLIS_LOGIN_ISSUER     as --issuer
  PORTCULLIS_LOGIN_CLIENT_ID  as --client-id
  PORTCULLIS_LOGIN_SCOPE      as --scope
  PORTCULLIS_LOGIN_RESOURCE   as --resource
  BROWSER                     the program that opens the page`

const URL_OPTION = [
  '--url <url>',
  `the gateway (default: PORTCULLIS_URL, or ${DEFAULT_URL})`,
] as const

const loginCommand = (program: Command) =>
  offlineCommand(program, {
    name: 'login',
    does: 'log in as a person, with the browser or a device code',
    examples: [
      'portcullis login --issuer https://sso.example.com/realms/staff --client-id portcullis-cli',
      'portcullis login --device',
    ],
  })
    .option(...URL_OPTION)
    .option('--issuer <url>', 'where you log in (default: PORTCULLIS_LOGIN_ISSUER)')
    .option('--client-id <id>', 'public client there (default: PORTCULLIS_LOGIN_CLIENT_ID)')
    .option(
      '--scope <scopes>',
      'scopes, separated by spaces',
      process.env.PORTCULLIS_LOGIN_SCOPE || 'openid offline_access',
    )
    .option('--resource <uri>', 'audience of the token, where the issuer needs it (RFC 8707)')
    .option('--device', 'show a code to enter on another device')
    .option('--no-browser', 'print the URL only')
    .option('--port <number>', 'port of the redirect URI, 0 for a free one', portNumber, 0)
    .addHelpText('after', HELP)

export function addLoginCommands(program: Command): void {
  loginCommand(program).action(logIn)
  offlineCommand(program, {
    name: 'logout',
    does: 'end the login for a gateway, and revoke its tokens',
    examples: ['portcullis logout'],
  })
    .option(...URL_OPTION)
    .action(logOut)
  offlineCommand(program, {
    name: 'whoami',
    does: 'show which person or client commands use, and whether the gateway accepts it',
    examples: ['portcullis whoami'],
  })
    .option(...URL_OPTION)
    .option('--client-id <id>', "the operator's client id (default: PORTCULLIS_CLIENT_ID)")
    .action(whoAmI)
}

async function logIn(options: OptionsOf<typeof loginCommand>): Promise<void> {
  const { env } = process
  const url = gatewayUrl(options, env)
  const issuer = options.issuer ?? env.PORTCULLIS_LOGIN_ISSUER
  const clientId = options.clientId ?? env.PORTCULLIS_LOGIN_CLIENT_ID
  if (!issuer)
    throw usage(
      'PORTCULLIS_LOGIN_ISSUER is not set; or use --issuer with the URL of your identity provider',
    )
  if (!clientId)
    throw usage(
      'PORTCULLIS_LOGIN_CLIENT_ID is not set; or use --client-id with a public client of the issuer',
    )
  const { discover, logInByBrowser, logInByDevice, saveLogin, alone } = await import(
    '../login/flows.ts'
  )
  const output = createOutput(options.json ?? false)
  const print = (text: string) => void process.stderr.write(`${text}\n`)
  const server = await discover(issuer, clientId)
  const asked = {
    scope: options.scope,
    resource: options.resource ?? (env.PORTCULLIS_LOGIN_RESOURCE || undefined),
    print,
  }
  const login = options.device
    ? await logInByDevice(server, asked)
    : await logInByBrowser(server, { ...asked, port: options.port, opens: options.browser })
  await alone(async () => saveLogin(url, login))
  output.thing(shown(url, login))
}

async function logOut(options: CommonOptions): Promise<void> {
  const url = gatewayUrl(options, process.env)
  const login = loginFor(url)
  const output = createOutput(options.json ?? false)
  if (login === undefined) throw refused('not_logged_in', `there is no login for ${url}`)
  const { endLogin } = await import('../login/flows.ts')
  const problem = await endLogin(url, login)
  output.result({ gateway: url, revoked: problem === undefined }, `Logged out of ${url}.`)
  if (problem !== undefined) output.remark(`The tokens stay valid until they expire: ${problem}.`)
}

async function whoAmI(options: CommonOptions): Promise<void> {
  const { gateway, output, connection } = workWith(options)
  const refusal = await gateway.get('/keys').then(
    () => undefined,
    (error: Failure) => {
      if (!(error instanceof Failure) || error.exitCode !== REFUSED) throw error
      return error.code
    },
  )
  const login = loginFor(connection.url)
  const person =
    'login' in connection && login !== undefined
      ? shown(connection.url, login)
      : { gateway: connection.url, client: connection.clientId }
  const answer = {
    ...person,
    accepted: refusal === undefined,
    ...(refusal !== undefined && { reason: refusal }),
  }
  output.result(answer, record(answer, output.style))
  if (refusal !== undefined) process.exitCode = REFUSED
}

/** Without tokens. */
const shown = (
  gateway: string,
  { issuer, clientId, subject, name, expiresAtMs, refreshToken }: Login,
) => ({
  gateway,
  issuer,
  client: clientId,
  subject,
  name,
  expiresAt: expiresAtMs === undefined ? undefined : new Date(expiresAtMs).toISOString(),
  renews: refreshToken !== undefined,
})
