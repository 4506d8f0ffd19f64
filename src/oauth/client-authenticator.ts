/** Authentication of clients at `/oauth/*` (RFC 6749 sections 2.3 and 3.2.1). */
import { Denied } from '../errors.ts'
import { oauthRefused } from '../tokens/oauth-refusal.ts'
import type { Client } from './client.ts'
import type { AssertionUse, ClientAssertionVerifier } from './client-assertion.ts'
import { type ClientCredential, clientCredentialOf } from './client-credential.ts'
import {
  type ClientLogins,
  type CutOffs,
  KNOWN_ADDRESS_SECONDS,
  waitSeconds,
} from './client-logins.ts'
import { isClientSecret } from './client-secret.ts'
import type { OAuthForm } from './form.ts'

export interface ClientAuthenticatorOptions {
  readonly logins: ClientLogins
  readonly verifyAssertion: ClientAssertionVerifier
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** What of a request tells the client. */
export interface ClientRequest {
  /** The `Authorization` header. */
  readonly authorization: string | undefined
  readonly form: OAuthForm
  /** The normalised address that the request comes from. */
  readonly address: string
}

/** A client that is who it says, and what was learned of it in the same round trip. */
export interface AuthenticatedClient {
  readonly client: Client
  readonly cutOffs: CutOffs
}

export type ClientAuthenticator = (request: ClientRequest) => Promise<AuthenticatedClient>

/** What throttled attempts are told and recorded as. */
const LOGIN_LIMIT = 'client_authentication'

/**
 * Makes the authenticator. Throws `Denied`: `invalid_request`, `invalid_client`, `rate_limited` after
 * too many failures (before any secret or signature is looked at), `banned`; and `Unavailable` where
 * failures cannot be counted, because guessing would be free then.
 *
 * Who the client is not, is not told: unknown, disabled, wrong secret and bad signature are one
 * answer after the same work. Of failures at the same time, exactly as many are answered with
 * `invalid_client` as are allowed: a failure that is counted beyond that is `rate_limited`, too.
 */
export function createClientAuthenticator({
  logins,
  verifyAssertion,
  now,
}: ClientAuthenticatorOptions): ClientAuthenticator {
  return async function authenticate({ authorization, form, address }) {
    const credential = clientCredentialOf(authorization, form)
    const login = { clientId: credential.clientId, address }
    const state = await logins.begin(login)
    refuseBanned(state.bannedUntilSeconds, now())
    refuseTooMany(waitSeconds(state))

    const { client, knownForSeconds, cutOffs } = state
    const proof = await check(client, credential)
    if (client !== undefined && proof.good) {
      const remember = knownForSeconds < KNOWN_ADDRESS_SECONDS / 2
      if (!remember && proof.use === undefined) return { client, cutOffs }
      if (await logins.succeeded(login, { remember, use: proof.use })) return { client, cutOffs }
    }
    const { byAddress, byClient } = await logins.failed(login)
    const before = { ...byAddress, count: byAddress.count - 1 }
    const beforeClient = { ...byClient, count: byClient.count - 1 }
    refuseTooMany(waitSeconds({ byAddress: before, byClient: beforeClient, knownForSeconds }))
    throw oauthRefused('invalid_client', credential.method)
  }

  async function check(client: Client | undefined, credential: ClientCredential): Promise<Checked> {
    if (credential.method === 'private_key_jwt') {
      const use = await verifyAssertion(client, credential.assertion)
      return { good: use !== undefined, use }
    }
    return { good: await isClientSecret(client, credential.secret, now()), use: undefined }
  }
}

interface Checked {
  readonly good: boolean
  readonly use: AssertionUse | undefined
}

function refuseBanned(untilSeconds: number | undefined, nowMs: number): void {
  const retryAfterSeconds = Math.ceil((untilSeconds ?? 0) - nowMs / 1000)
  if (retryAfterSeconds > 0) throw new Denied({ code: 'banned', by: 'address', retryAfterSeconds })
}

function refuseTooMany(retryAfterSeconds: number | undefined): void {
  if (retryAfterSeconds === undefined) return
  throw new Denied({ code: 'rate_limited', limit: LOGIN_LIMIT, retryAfterSeconds })
}
