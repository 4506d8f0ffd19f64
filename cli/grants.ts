/** Grant types by names that people can type. */
import { InvalidArgumentError } from 'commander'

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const GRANTS: Readonly<Record<string, string>> = {
  client_credentials: 'client_credentials',
  refresh_token: 'refresh_token',
  token_exchange: TOKEN_EXCHANGE,
  [TOKEN_EXCHANGE]: TOKEN_EXCHANGE,
}

/** For the help of an option. */
export const GRANT_NAMES = 'client_credentials, refresh_token or token_exchange'

/** Collects grant types; the long name of token exchange (RFC 8693) is understood, too. */
export function grant(text: string, earlier: readonly string[] = []): readonly string[] {
  const type = Object.hasOwn(GRANTS, text) ? GRANTS[text] : undefined
  if (type === undefined) throw new InvalidArgumentError(`It must be ${GRANT_NAMES}.`)
  return [...earlier, type]
}
