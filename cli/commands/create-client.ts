/** `portcullis clients create`: creates an OAuth client. */
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { repeated, seconds } from '../arguments.ts'
import { onlineCommand, workWith } from '../command.ts'
import { usage } from '../failure.ts'
import { readText } from '../text-file.ts'

interface CreatedClient {
  readonly clientSecret?: string
}

export function addCreateClient(clients: Command): void {
  onlineCommand(clients, {
    name: 'create',
    does: 'create a client; its secret is printed and not stored',
    examples: [
      'portcullis clients create --name billing --grant client_credentials --role reader',
      'portcullis clients create --name web --grant token_exchange --grant refresh_token',
      'portcullis clients create --name bank --grant client_credentials --jwks public-keys.json',
      'portcullis clients create --name agent --public --grant authorization_code --grant refresh_token --redirect-uri http://127.0.0.1/callback',
    ],
  })
    .requiredOption('--name <name>', 'name of the client in the list')
    .requiredOption('--grant <type>', `${GRANT_NAMES}; repeatable`, grant)
    .option('--scope <scope>', 'largest scope of its tokens; repeatable', repeated)
    .option('--role <role>', 'a role of its own tokens; repeatable', repeated)
    .option(
      '--audience <uri>',
      'permitted audience of its tokens (default: the gateway); repeatable',
      repeated,
    )
    .option('--tenant <tenant>', 'tenant')
    .option(
      '--jwks <file>',
      'its public keys, a JWK Set, with which it authenticates instead of a secret',
    )
    .option('--token-format <format>', 'format of its tokens: jwt or opaque (default: jwt)')
    .option(
      '--token-algorithm <algorithm>',
      'algorithm of its JWTs: ES256, RS256, Ed25519 or EdDSA',
    )
    .option(
      '--access-token-life <time>',
      "lifetime of its tokens, 5m to 1h (default: the policy's)",
      seconds,
    )
    .option('--dpop-bound', 'its tokens must be bound to a key (DPoP)')
    .option('--profile <profile>', 'rules of a security profile: fapi2')
    .option(
      '--redirect-uri <uri>',
      'where users return to after /oauth/authorize; repeatable',
      repeated,
    )
    .option('--public', 'it has no secret: a program on the computer of its user, or a page')
    .action(async (options) => {
      const { gateway, output } = workWith(options)
      const answer = await gateway.post<CreatedClient>('/clients', {
        name: options.name,
        grants: options.grant,
        scopes: options.scope,
        roles: options.role,
        audiences: options.audience,
        tenant: options.tenant,
        jwks: options.jwks === undefined ? undefined : jsonIn(options.jwks),
        tokenFormat: options.tokenFormat,
        tokenAlgorithm: options.tokenAlgorithm,
        accessTokenSeconds: options.accessTokenLife,
        dpopBound: options.dpopBound,
        profile: options.profile,
        redirectUris: options.redirectUri,
        public: options.public,
      })
      output.once(answer, 'clientSecret')
    })
}

/**
 * Reads a JWK Set from a file. Throws a usage failure if a key is private, so that a private key
 * never leaves this machine.
 */
function jsonIn(file: string): unknown {
  let value: { readonly keys?: readonly object[] }
  try {
    value = JSON.parse(readText(file)) as typeof value
  } catch {
    throw usage(`--jwks: ${file} cannot be read as JSON`)
  }
  if (!Array.isArray(value?.keys)) throw usage(`--jwks: ${file} is not a JWK Set`)
  if (value.keys.some((key) => 'd' in key || 'k' in key)) {
    throw usage(`--jwks: ${file} contains private keys; give public keys only`)
  }
  return value
}

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const GRANTS: Readonly<Record<string, string>> = {
  client_credentials: 'client_credentials',
  refresh_token: 'refresh_token',
  authorization_code: 'authorization_code',
  jwt_bearer: JWT_BEARER,
  [JWT_BEARER]: JWT_BEARER,
  token_exchange: TOKEN_EXCHANGE,
  [TOKEN_EXCHANGE]: TOKEN_EXCHANGE,
}

/** For the help of an option. */
const GRANT_NAMES =
  'client_credentials, refresh_token, authorization_code, token_exchange or jwt_bearer'

/** Collects grant types. Also accepts the full URN of token exchange (RFC 8693). */
function grant(text: string, earlier: readonly string[] = []): readonly string[] {
  const type = Object.hasOwn(GRANTS, text) ? GRANTS[text] : undefined
  if (type === undefined) throw new InvalidArgumentError(`It must be ${GRANT_NAMES}.`)
  return [...earlier, type]
}
