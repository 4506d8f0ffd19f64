/** Finds out whether a provider accepts the gateway as its client, with a code that no login has. */

import { authenticateRequest } from '../../src/access/tokens/issuer-client-authentication.ts'
import type { WholeConfig } from '../../src/features/environment.ts'
import { objectIn } from '../json.ts'
import { type Answer, request } from './request.ts'

/** A client of the gateway at a provider. */
export type Client = WholeConfig['issuerClients'][number]

/** What is wrong, and how to correct it. Contains no text of the provider. */
export interface ClientMistake {
  readonly seen: string
  readonly remedy: string
}

export interface TokenEndpointReport {
  /** Undefined if nothing says that the provider refuses the client. */
  readonly mistake?: ClientMistake | undefined
  /** The response, or the reason for its absence. */
  readonly answer: Answer | string
  /** The error of the response, in the form of RFC 6749 section 5.2. */
  readonly error: string | undefined
}

/** No provider issues it. */
const NO_CODE = 'portcullis-doctor'
/** RFC 6749 section 5.2, and GitHub's name for it. */
const REFUSED_CLIENT: readonly unknown[] = ['invalid_client', 'incorrect_client_credentials']
const ERROR_CODE = /^[a-z_]{1,64}$/

/**
 * Sends the request of a login with a code that does not exist. The provider authenticates the client
 * before it looks for the code (RFC 6749 section 4.1.3), so its error shows which of the two it refused.
 */
export async function clientMistake(
  url: string,
  client: Client,
  redirectUri: string,
): Promise<TokenEndpointReport> {
  const { headers, form } = await authenticateRequest(client, Date.now(), 'identity_provider')
  const answer = await request(url, {
    method: 'POST',
    headers: { accept: 'application/json', ...headers },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: NO_CODE,
      redirect_uri: redirectUri,
      // Of PKCE (RFC 7636 section 4.1).
      code_verifier: NO_CODE.repeat(3),
      ...form,
    }),
  })
  const error = typeof answer === 'string' ? undefined : errorIn(answer.text)
  return { answer, error, mistake: mistakeFor(error, client, redirectUri) }
}

function mistakeFor(
  error: string | undefined,
  client: Client,
  redirectUri: string,
): ClientMistake | undefined {
  if (REFUSED_CLIENT.includes(error)) {
    const credential = 'key' in client ? 'key' : 'secret'
    return {
      seen: `the provider refuses the id or the ${credential} of the client (${error})`,
      remedy:
        credential === 'key'
          ? 'Register the public key of the client at the provider, and compare `id` and `audience` in ISSUER_CLIENTS.'
          : 'Set `id` and `secret` in ISSUER_CLIENTS to those that the provider shows, and `method` to what it accepts.',
    }
  }
  if (error !== 'redirect_uri_mismatch') return undefined
  return {
    seen: `the provider does not accept the redirect URI ${redirectUri}`,
    remedy: 'Register this URL as the callback of the application at the provider.',
  }
}

function errorIn(text: string): string | undefined {
  const { error } = (objectIn(text) ?? {}) as { readonly error?: unknown }
  return typeof error === 'string' && ERROR_CODE.test(error) ? error : undefined
}
