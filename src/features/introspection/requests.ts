/** The two requests that ask an issuer about a token, and the reading of their responses. */

import { call } from '../../access/tokens/document.ts'
import { authenticateRequest } from '../../access/tokens/issuer-client-authentication.ts'
import { present } from '../../access/tokens/present.ts'
import { Unavailable } from '../../errors.ts'
import { parseStrictJson } from '../../http/strict-json.ts'
import type { IssuerClient } from '../../validators/issuer-client.ts'
import {
  type Refusal,
  type RefusalResponse,
  refusalOfIntrospection,
  refusalOfUserinfo,
} from './refusals.ts'

export type TokenClaims = Readonly<Record<string, unknown>>

/**
 * Returns the claims of a token. Undefined: the issuer does not accept the token. `undecided`: the
 * response does not say what it refuses; see `Refusal`. Throws `Unavailable` for every other response,
 * and without one.
 */
export type ClaimsRequest = (
  endpoint: string,
  token: string,
  signal: AbortSignal,
) => Promise<TokenClaims | 'undecided' | undefined>

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
    const { headers, form } = await authenticateRequest(client, now(), 'introspection')
    const init = {
      method: 'POST',
      headers: { ...JSON_TYPE, ...headers },
      body: new URLSearchParams({ token, token_type_hint: 'access_token', ...form }),
    }
    const response = await send(endpoint, init, signal)
    if (response.status !== 200) return settled(refusalIn(response, refusalOfIntrospection))
    const claims = claimsIn(response.text)
    // Some providers send their errors with status 200.
    if (present(claims, 'active') === undefined && present(claims, 'error') !== undefined)
      return settled(refusalOfIntrospection(response))
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
  const response = await send(endpoint, init, signal)
  return response.status === 200
    ? claimsIn(response.text)
    : settled(refusalIn(response, refusalOfUserinfo))
}

function refusalIn(
  response: RefusalResponse,
  refusalOf: (response: RefusalResponse) => Refusal,
): Refusal {
  return response.status >= 400 && response.status < 500 ? refusalOf(response) : 'outage'
}

function settled(refusal: Refusal): 'undecided' | undefined {
  if (refusal === 'outage') throw new Unavailable('introspection', 'refused')
  return refusal === 'undecided' ? refusal : undefined
}

const send = (endpoint: string, init: RequestInit, signal: AbortSignal) =>
  call(endpoint, init, {
    dependency: 'introspection',
    maxBytes: MAX_RESPONSE_BYTES,
    signal,
    readsRefusals: true,
  })

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
