/** Short names of OAuth grant types. */
import { InvalidArgumentError } from 'commander'

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
export const GRANT_NAMES =
  'client_credentials, refresh_token, authorization_code, token_exchange or jwt_bearer'

/** Collects grant types. Also accepts the full URN of token exchange (RFC 8693). */
export function grant(text: string, earlier: readonly string[] = []): readonly string[] {
  const type = Object.hasOwn(GRANTS, text) ? GRANTS[text] : undefined
  if (type === undefined) throw new InvalidArgumentError(`It must be ${GRANT_NAMES}.`)
  return [...earlier, type]
}
