/** The two requests that ask an issuer about a token, and the reading of their responses. */
import { Unavailable } from '../errors.ts'
import { parseStrictJson } from '../http/strict-json.ts'
import { call } from '../tokens/document.ts'
import type { IssuerClient } from '../validators/issuer-client.ts'
import { authenticationOf } from './client-authentication.ts'

export type TokenClaims = Readonly<Record<string, unknown>>

/**
 * Returns the claims of a token. Undefined: the issuer does not accept the token. Throws
 * `Unavailable` for every other response, and without one.
 */
export type ClaimsRequest = (
  endpoint: string,
  token: string,
  signal: AbortSignal,
) => Promise<TokenClaims | undefined>

/** Larger than the claims of any token. */
const MAX_RESPONSE_BYTES = 65_536
/** As for the claims of a JWT. */
const MAX_JSON_DEPTH = 16
const JSON_TYPE = { accept: 'application/json' }

/**
 * Creates the introspection request (RFC 7662 section 2). A refused client is a failure of the
 * gateway, not of the token.
 */
export function introspectionRequest(client: IssuerClient, now: () => number): ClaimsRequest {
  return async function introspect(endpoint, token, signal) {
    const { headers, form } = await authenticationOf(client, now())
    const init = {
      method: 'POST',
      headers: { ...JSON_TYPE, ...headers },
      body: new URLSearchParams({ token, token_type_hint: 'access_token', ...form }),
    }
    const { status, text } = await send(endpoint, init, signal)
    if (status !== 200) throw new Unavailable('introspection', 'refused')
    const claims = claimsIn(text)
    if (typeof claims.active !== 'boolean') throw new Unavailable('introspection', 'malformed')
    return claims.active ? claims : undefined
  }
}

/**
 * Sends the userinfo request (OpenID Connect Core section 5.3), with the token as its credential. A
 * signed or encrypted response is not supported.
 */
export const userinfoRequest: ClaimsRequest = async function readUserinfo(endpoint, token, signal) {
  const init = { headers: { ...JSON_TYPE, authorization: `Bearer ${token}` } }
  const { status, headers, text } = await send(endpoint, init, signal)
  if (status === 200) return claimsIn(text)
  // RFC 6750 section 3.1. Another 403 may be a limit or a firewall of the provider.
  const isInsufficient =
    status === 403 && headers.get('www-authenticate')?.includes('insufficient_scope') === true
  if (status === 401 || isInsufficient) return undefined
  throw new Unavailable('introspection', 'refused')
}

const send = (endpoint: string, init: RequestInit, signal: AbortSignal) =>
  call(endpoint, init, { dependency: 'introspection', maxBytes: MAX_RESPONSE_BYTES, signal })

function claimsIn(text: string): TokenClaims {
  try {
    const value = parseStrictJson(text, { maxDepth: MAX_JSON_DEPTH })
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as TokenClaims
  } catch (cause) {
    throw new Unavailable('introspection', 'malformed', { cause })
  }
  throw new Unavailable('introspection', 'malformed')
}
