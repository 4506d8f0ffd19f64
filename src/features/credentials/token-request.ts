/** The request of the client credentials grant, through `oauth4webapi`. */
import * as oauth from 'oauth4webapi'
import { call } from '../../access/tokens/document.ts'
import { Unavailable } from '../../errors.ts'
import { refuseAmbiguousJson } from '../../http/strict-json.ts'
import type { AccessToken } from './token-source.ts'

export interface TokenRequestOptions {
  readonly endpoint: string
  readonly client: string
  readonly secret: string
  readonly method: 'client_secret_basic' | 'client_secret_post'
  readonly scope?: string | undefined
  readonly resource?: string | undefined
  readonly audience?: string | undefined
}

const MAX_RESPONSE_BYTES = 65_536
/** For a response without `expires_in`. */
const DEFAULT_LIFE_SECONDS = 300
/** Statuses that say nothing about the client: it is too slow, too early, or one of too many. */
const OVERLOADED: readonly number[] = [408, 425, 429]
/** RFC 6750 section 2.1. */
const TOKEN = /^[\w.~+/-]+=*$/

/**
 * Creates the function that fetches a token. It throws `Unavailable`: `unauthorized` of the origin if the
 * authorization server refuses the client or its request, otherwise a fault of `identity_provider`.
 */
export function tokenRequest({
  endpoint,
  client: id,
  secret,
  method,
  ...parameters
}: TokenRequestOptions): (signal: AbortSignal) => Promise<AccessToken> {
  const server: oauth.AuthorizationServer = { issuer: endpoint, token_endpoint: endpoint }
  const client: oauth.Client = { client_id: id }
  const authentication =
    method === 'client_secret_post'
      ? oauth.ClientSecretPost(secret)
      : oauth.ClientSecretBasic(secret)
  const form = Object.fromEntries(
    Object.entries(parameters).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  )
  return async function fetchToken(signal) {
    try {
      const response = await oauth.clientCredentialsGrantRequest(
        server,
        client,
        authentication,
        form,
        {
          signal,
          [oauth.customFetch]: boundedFetch,
          [oauth.allowInsecureRequests]: new URL(endpoint).protocol === 'http:',
        },
      )
      const answer = await oauth.processClientCredentialsResponse(server, client, response)
      const { access_token: token, token_type: type, expires_in: seconds } = answer
      if (type !== 'bearer' || !TOKEN.test(token))
        throw new Unavailable('identity_provider', 'malformed')
      return { token, lifeMs: (seconds ?? DEFAULT_LIFE_SECONDS) * 1_000 }
    } catch (cause) {
      throw failureOf(cause)
    }
  }
}

async function boundedFetch(
  url: string,
  { method, headers, body, signal }: oauth.CustomFetchOptions<'POST', URLSearchParams>,
): Promise<Response> {
  const {
    status,
    headers: fields,
    text,
  } = await call(
    url,
    { method, headers, body },
    {
      dependency: 'identity_provider',
      maxBytes: MAX_RESPONSE_BYTES,
      signal: signal ?? new AbortController().signal,
      readsRefusals: true,
    },
  )
  if (status < 200 || status >= 500 || OVERLOADED.includes(status))
    throw new Unavailable('identity_provider', 'refused')
  refuseAmbiguousJson(text)
  return new Response(text === '' ? null : text, { status, headers: fields })
}

function failureOf(cause: unknown): Unavailable {
  if (cause instanceof Unavailable) return cause
  const isRefusal =
    cause instanceof oauth.ResponseBodyError || cause instanceof oauth.WWWAuthenticateChallengeError
  return isRefusal
    ? new Unavailable('origin', 'unauthorized', { cause })
    : new Unavailable('identity_provider', 'malformed', { cause })
}
