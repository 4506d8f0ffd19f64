/** The gateway as the OAuth client of a provider: how it authenticates, calls, and exchanges a code. */
import * as oauth from 'oauth4webapi'
import { authenticateRequest } from '../../access/tokens/issuer-client-authentication.ts'
import type { IssuerConfig } from '../../validators/issuer.ts'
import type { IssuerClient } from '../../validators/issuer-client.ts'
import { boundedFetch } from './provider-call.ts'
import { readTokenResponse, type TokenResponse } from './token-response.ts'

/** Of one call to the provider. */
export const CALL_TIMEOUT_MS = 5_000

interface ExpectedResponse {
  readonly state: string
  /** Of PKCE (RFC 7636). */
  readonly verifier: string
  /** Where the response has arrived. */
  readonly callbackPath: string
}

export interface ProviderClientOptions {
  readonly client: IssuerClient
  readonly issuer: Pick<IssuerConfig, 'issuer' | 'clockTolerance'>
  /** The gateway's public URL. */
  readonly publicUrl: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export function createProviderClient({
  client: credentials,
  issuer: { issuer, clockTolerance },
  publicUrl,
  now,
}: ProviderClientOptions) {
  const client: oauth.Client = {
    client_id: credentials.id,
    [oauth.clockTolerance]: clockTolerance,
  }
  const authentication: oauth.ClientAuth = async (_as, _client, body, headers) => {
    const { headers: fields, form } = await authenticateRequest(
      credentials,
      now(),
      'identity_provider',
    )
    for (const [name, value] of Object.entries(form)) body.set(name, value)
    for (const [name, value] of Object.entries(fields)) headers.set(name, value)
  }
  const callOptions = () => ({
    [oauth.customFetch]: boundedFetch,
    // Only for a provider on this machine, in development: `privateUrl` has checked the issuer.
    [oauth.allowInsecureRequests]: new URL(issuer).protocol === 'http:',
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  })
  return {
    client,
    authentication,
    /** Options of one call, which begins now. */
    callOptions,
    /** Exchanges the code of an authorization response. Throws as `oauth4webapi` does, and `Unavailable`. */
    async exchange(
      as: oauth.AuthorizationServer,
      response: URLSearchParams,
      { state, verifier, callbackPath }: ExpectedResponse,
    ): Promise<TokenResponse> {
      const parameters = oauth.validateAuthResponse(as, client, response, state)
      const answer = await oauth.authorizationCodeGrantRequest(
        as,
        client,
        authentication,
        parameters,
        publicUrl + callbackPath,
        verifier,
        callOptions(),
      )
      return readTokenResponse(as, client, answer)
    },
  }
}
