/** Authenticates clients at `/oauth/*` (RFC 6749 sections 2.3 and 3.2.1). */
import { Denied } from '../errors.ts'
import { oauthRefused } from '../tokens/rejection.ts'
import type { Client } from './client.ts'
import type { AssertionUse, ClientAssertionVerifier } from './client-assertion.ts'
import { type ClientCredential, clientCredentialOf } from './client-credential.ts'
import {
  type ClientLogins,
  KNOWN_ADDRESS_SECONDS,
  type RevokedBeforeTimes,
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

/** The parts of a request that identify the client. */
export interface ClientRequest {
  /** The `Authorization` header. */
  readonly authorization: string | undefined
  readonly form: OAuthForm
  /** The normalised address of the caller. */
  readonly address: string
}

/** An authenticated client, and its cutoffs from the same round trip. */
export interface AuthenticatedClient {
  readonly client: Client
  readonly revokedBefore: RevokedBeforeTimes
}

export type ClientAuthenticator = (request: ClientRequest) => Promise<AuthenticatedClient>

/** The name of the limit in responses and audit events for throttled attempts. */
const LOGIN_LIMIT = 'client_authentication'

/**
 * Creates the authenticator. Throws `Denied`: `invalid_request`, `invalid_client`, `banned`, or
 * `rate_limited`. After too many failures, `rate_limited` is thrown before any secret or signature
 * is verified. Throws `Unavailable` if failures cannot be counted, because guessing would then be
 * unlimited.
 *
 * The response does not reveal why authentication failed. An unknown client, a disabled client, a
 * wrong secret and a bad signature get the same response after the same work. Of concurrent
 * failures, exactly as many get `invalid_client` as are allowed. A failure that is counted beyond
 * that also gets `rate_limited`.
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

    const { client, knownForSeconds, revokedBefore } = state
    const proof = await check(client, credential)
    let failed = proof.failed
    if (client !== undefined && failed === undefined) {
      const remember = knownForSeconds < KNOWN_ADDRESS_SECONDS / 2
      if (!remember && proof.use === undefined) return { client, revokedBefore }
      if (await logins.succeeded(login, { remember, use: proof.use }))
        return { client, revokedBefore }
      failed = 'private_key_jwt_replay'
    }
    const { byAddress, byClient } = await logins.failed(login)
    const before = { ...byAddress, count: byAddress.count - 1 }
    const beforeClient = { ...byClient, count: byClient.count - 1 }
    refuseTooMany(waitSeconds({ byAddress: before, byClient: beforeClient, knownForSeconds }))
    throw oauthRefused('invalid_client', failed ?? credential.method)
  }

  async function check(client: Client | undefined, credential: ClientCredential): Promise<Checked> {
    if (credential.method === 'private_key_jwt') {
      const use = await verifyAssertion(client, credential.assertion)
      return typeof use === 'string' ? { failed: `private_key_jwt_${use}` } : { use }
    }
    return (await isClientSecret(client, credential.secret, now()))
      ? {}
      : { failed: credential.method }
  }
}

interface Checked {
  /** The reason for the audit trail; undefined if the credential is valid. */
  readonly failed?: string
  readonly use?: AssertionUse
}

function refuseBanned(untilSeconds: number | undefined, nowMs: number): void {
  const retryAfterSeconds = Math.ceil((untilSeconds ?? 0) - nowMs / 1000)
  if (retryAfterSeconds > 0) throw new Denied({ code: 'banned', by: 'address', retryAfterSeconds })
}

function refuseTooMany(retryAfterSeconds: number | undefined): void {
  if (retryAfterSeconds === undefined) return
  throw new Denied({ code: 'rate_limited', limit: LOGIN_LIMIT, retryAfterSeconds })
}
