/**
 * Parses the credential of a client (RFC 6749 section 2.3, RFC 7521 section 4.2): exactly one
 * method per request.
 */
import { readPayload } from '../tokens/jws.ts'
import { oauthRefused } from '../tokens/rejection.ts'
import { decodeFormText, type OAuthForm } from './form.ts'

/** A credential that a client presents. Nothing of it has been verified. */
export type ClientCredential =
  | {
      readonly method: 'client_secret_basic' | 'client_secret_post'
      readonly clientId: string
      readonly secret: string
    }
  | { readonly method: 'private_key_jwt'; readonly clientId: string; readonly assertion: string }

export const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

const BASIC = /^basic +([A-Za-z\d+/]+={0,2})$/i
/** Longer credentials cannot be valid. The bound saves the work of hashing or parsing them. */
const MAX_CREDENTIAL_CHARS = 8_192

/**
 * Extracts the only credential of a request. Throws `Denied`: `invalid_request` for two methods at
 * once, or a `client_id` that does not match; `invalid_client` for a missing or malformed
 * credential.
 */
export function clientCredentialOf(
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
  if (clientId === undefined || secret === undefined || secret.length > MAX_CREDENTIAL_CHARS)
    throw oauthRefused('invalid_client', 'client_credential_missing')
  return { method: 'client_secret_post', clientId, secret }
}

/**
 * Parses HTTP Basic credentials. Both parts are form-encoded, so that they may contain a `:` (RFC
 * 6749 section 2.3.1).
 */
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
  if (!clientId || !secret) throw malformed()
  return { method: 'client_secret_basic', clientId, secret }
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
