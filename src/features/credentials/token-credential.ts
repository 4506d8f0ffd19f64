/** Access tokens of the gateway itself, for an origin. */
import type { OriginRequest } from '../../origin/origin.ts'
import type { Credential } from './authorized-origin.ts'
import { type TokenRequestOptions, tokenRequest } from './token-request.ts'
import { createTokenSource, type TokenSourceOptions } from './token-source.ts'

type TokenCredentialOptions = TokenRequestOptions & Pick<TokenSourceOptions, 'watch' | 'now'>

const HEADER = 'authorization'
const SCHEME = 'Bearer '

/** Creates the credential that is an access token of the client of an authorization server. */
export function createTokenCredential({
  watch,
  now,
  ...options
}: TokenCredentialOptions): Credential {
  const tokens = createTokenSource({
    fetchToken: tokenRequest(options),
    target: options.endpoint,
    watch,
    now,
  })
  const tokenOf = ({ headers }: OriginRequest) => (headers.get(HEADER) ?? '').slice(SCHEME.length)
  return {
    header: HEADER,
    async apply(request) {
      const token = await tokens.current(request.timeoutMs)
      return { ...request, headers: new Map(request.headers).set(HEADER, SCHEME + token) }
    },
    refused: (request) => tokens.drop(tokenOf(request)),
  }
}
