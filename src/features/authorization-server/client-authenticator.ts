/** Authenticates clients at `/oauth/*` (RFC 6749 sections 2.3 and 3.2.1). */

import { readPayload } from '../../access/tokens/jws.ts'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import { Denied } from '../../errors.ts'
import type { ClientCheck } from '../../problems/checks.ts'
import { secondsUntil } from '../../problems/retry-after.ts'
import { type Client, followsFapi } from './client.ts'
import { type AssertionUse, createClientAssertionVerifier } from './client-assertion.ts'
import {
  KNOWN_ADDRESS_SECONDS,
  NO_FAILURES,
  type RevokedBeforeTimes,
  waitSeconds,
} from './client-logins.ts'
import { isClientSecret } from './client-secret.ts'
import { decodeFormText, type OAuthForm } from './form.ts'
import { TOKEN_PATH } from './metadata.ts'
import type { AuthorizationServerOptions } from './options.ts'

/** The parts of a request that identify the client. */
export interface ClientRequest {
  /** As it arrived. */
  readonly url: string
  readonly authorization: string | undefined
  readonly form: OAuthForm
  /** The normalized address of the caller. */
  readonly address: string
}

/** An authenticated client, and its cutoffs from the same round trip. */
export interface AuthenticatedClient {
  readonly client: Client
  readonly revokedBefore: RevokedBeforeTimes
}

export type ClientAuthenticator = ReturnType<typeof createClientAuthenticator>

const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

const BASIC = /^basic +([A-Za-z\d+/]+={0,2})$/i
/** Longer credentials cannot be valid. The bound saves the work of hashing or parsing them. */
const MAX_CREDENTIAL_CHARS = 8_192

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
  issuer,
  logins,
  publicClients,
  profile,
  now,
}: Pick<AuthorizationServerOptions, 'issuer' | 'logins' | 'publicClients' | 'profile' | 'now'>) {
  // RFC 7523 section 3, RFC 9126 section 2.
  const audiences = [issuer, issuer + TOKEN_PATH]
  const verifyAssertion = createClientAssertionVerifier({ audiences, profile, now })

  return async function authenticate({
    url,
    authorization,
    form,
    address,
  }: ClientRequest): Promise<AuthenticatedClient> {
    const credential = readClientCredential(authorization, form)
    if (credential.method === 'none' && publicClients === undefined)
      throw oauthRefused('invalid_client', 'client_credential_missing')
    const login = { clientId: credential.clientId, address }
    const state = await logins.begin(login)
    refuseBanned(state.bannedUntilSeconds, now())
    // Without a secret there is nothing to guess. The limit by client would let anyone lock out a public
    // client, which no address can prove to be.
    const hasSecret = credential.method !== 'none'
    refuseTooMany(waitSeconds(hasSecret ? state : { ...state, byClient: NO_FAILURES }))

    const { knownForSeconds, revokedBefore } = state
    const client = state.client ?? (await unregistered(credential))
    const proof = await check(client, credential, issuer + new URL(url).pathname)
    let failed = proof.failed
    if (client !== undefined && failed === undefined) {
      // An address that knows the id of a public client has proved nothing.
      const remember = !client.public && knownForSeconds < KNOWN_ADDRESS_SECONDS / 2
      if (!remember && proof.use === undefined) return { client, revokedBefore }
      if (await logins.succeeded(login, { remember, use: proof.use }))
        return { client, revokedBefore }
      failed = 'private_key_jwt_replay'
    }
    const { byAddress, byClient } = await logins.failed(login, hasSecret)
    const before = { ...byAddress, count: byAddress.count - 1 }
    const beforeClient = { ...byClient, count: byClient.count - 1 }
    refuseTooMany(waitSeconds({ byAddress: before, byClient: beforeClient, knownForSeconds }))
    throw oauthRefused('invalid_client', failed ?? credential.method)
  }

  /** Returns a client that is not in the registry. Such clients are public. */
  async function unregistered({ method, clientId }: ClientCredential) {
    return method === 'none' ? publicClients?.find(clientId) : undefined
  }

  async function check(
    client: Client | undefined,
    credential: ClientCredential,
    endpoint: string,
  ): Promise<Checked> {
    if (credential.method === 'none')
      return client?.public && !client.disabled && !followsFapi(client, profile)
        ? {}
        : { failed: 'client_not_public' }
    if (credential.method === 'private_key_jwt') {
      const use = await verifyAssertion(client, credential.assertion, endpoint)
      return typeof use === 'string' ? { failed: `private_key_jwt_${use}` } : { use }
    }
    const isSecret = await isClientSecret(client, credential.secret, now())
    const mayUseSecret = client !== undefined && !followsFapi(client, profile)
    return isSecret && mayUseSecret ? {} : { failed: credential.method }
  }
}

/** A credential that a client presents. Nothing of it has been verified. */
type ClientCredential =
  | {
      readonly method: 'client_secret_basic' | 'client_secret_post'
      readonly clientId: string
      readonly secret: string
    }
  | { readonly method: 'private_key_jwt'; readonly clientId: string; readonly assertion: string }
  /** Of a public client (RFC 7591 section 2). */
  | { readonly method: 'none'; readonly clientId: string }

interface Checked {
  /** The reason for the audit trail; undefined if the credential is valid. */
  readonly failed?: ClientCheck
  readonly use?: AssertionUse
}

function refuseBanned(untilSeconds: number | undefined, nowMs: number): void {
  const untilMs = (untilSeconds ?? 0) * 1000
  if (untilMs <= nowMs) return
  const retryAfterSeconds = secondsUntil(untilMs, nowMs)
  throw new Denied({ code: 'banned', by: 'address', retryAfterSeconds })
}

function refuseTooMany(retryAfterSeconds: number | undefined): void {
  if (retryAfterSeconds === undefined) return
  throw new Denied({ code: 'rate_limited', limit: 'client_authentication', retryAfterSeconds })
}

/**
 * Extracts the credential of a request (RFC 6749 section 2.3, RFC 7521 section 4.2). Throws
 * `Denied`: `invalid_request` for two methods at once, or a `client_id` that does not match;
 * `invalid_client` for a missing or malformed credential.
 */
function readClientCredential(
  authorization: string | undefined,
  form: OAuthForm,
): ClientCredential {
  const clientId = form.one('client_id')
  const secret = form.one('client_secret')
  const assertion = form.one('client_assertion')
  const assertionType = form.one('client_assertion_type')
  const asserted = assertion !== undefined || assertionType !== undefined
  const ways = [authorization !== undefined, secret !== undefined, asserted].filter(Boolean)
  if (ways.length > 1) throw oauthRefused('invalid_request', 'client_methods')

  if (authorization !== undefined) {
    const credential = basicCredential(authorization)
    if (clientId !== undefined && clientId !== credential.clientId)
      throw oauthRefused('invalid_request', 'client_id_differs')
    return credential
  }
  if (asserted) {
    if (assertion === undefined || assertionType !== JWT_BEARER)
      throw oauthRefused('invalid_client', 'client_assertion_type')
    const subject = assertedClient(assertion)
    if (clientId !== undefined && clientId !== subject)
      throw oauthRefused('invalid_request', 'client_id_differs')
    return { method: 'private_key_jwt', clientId: subject, assertion }
  }
  if (clientId !== undefined && secret === undefined) return { method: 'none', clientId }
  if (clientId === undefined || secret === undefined || secret.length > MAX_CREDENTIAL_CHARS)
    throw oauthRefused('invalid_client', 'client_credential_missing')
  return { method: 'client_secret_post', clientId, secret }
}

/** Parses HTTP Basic credentials. Both parts are form-encoded (RFC 6749 section 2.3.1). */
function basicCredential(authorization: string): ClientCredential {
  const malformed = () => oauthRefused('invalid_client', 'client_basic')
  if (authorization.length > MAX_CREDENTIAL_CHARS) throw malformed()
  const [, encoded] = BASIC.exec(authorization) ?? []
  if (encoded === undefined || encoded.length % 4 !== 0) throw malformed()
  const text = atob(encoded)
  const at = text.indexOf(':')
  // Form-encoded text is ASCII. Any other byte means that the client does not encode.
  if (at === -1 || /[^\x20-\x7e]/.test(text)) throw malformed()
  const clientId = decodeFormText(text.slice(0, at))
  const secret = decodeFormText(text.slice(at + 1))
  if (!clientId || secret === undefined) throw malformed()
  // An empty secret is none (RFC 6749 section 2.3.1).
  return secret === ''
    ? { method: 'none', clientId }
    : { method: 'client_secret_basic', clientId, secret }
}

/** Returns the client that the assertion names. Does NOT verify the signature. */
function assertedClient(assertion: string): string {
  try {
    const { sub } = readPayload(assertion)
    if (typeof sub === 'string' && sub !== '') return sub
  } catch (cause) {
    throw oauthRefused('invalid_client', 'client_assertion_malformed', { cause })
  }
  throw oauthRefused('invalid_client', 'client_assertion_malformed')
}
