/** A transmitter of security events, with real signatures. */
import { type CryptoKey, importJWK, SignJWT } from 'jose'
import { ISSUER, type TestKey } from '../../harness/issuer.ts'

export const EVENT_AUDIENCE = 'https://receiver.test'
export const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/'
export const RISC = 'https://schemas.openid.net/secevent/risc/event-type/'
export const SSF = 'https://schemas.openid.net/secevent/ssf/event-type/'

export interface EventOptions {
  /** Replace those of a valid event. `undefined` removes a claim. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
}

export const userOf = (sub: string, iss = ISSUER) => ({ format: 'iss_sub', iss, sub })

/** Signs a security event token that the receiver accepts, except for the changes in `options`. */
export async function signEvent(
  key: TestKey,
  type: string,
  subject: unknown,
  { claims, header }: EventOptions = {},
  payload: object = {},
): Promise<string> {
  const now = Math.floor(Date.now() / 1000)
  return new SignJWT({
    iss: ISSUER,
    aud: EVENT_AUDIENCE,
    iat: now,
    jti: crypto.randomUUID(),
    sub_id: subject,
    events: { [type]: { event_timestamp: now, ...payload } },
    ...claims,
  })
    .setProtectedHeader({ alg: 'ES256', typ: 'secevent+jwt', kid: key.kid, ...header })
    .sign((await importJWK(key.privateJwk, 'ES256')) as CryptoKey)
}

/** Sends an event as a transmitter does (RFC 8935 section 2.1). */
export const pushEvent = (url: string, token: string, headers: object = {}) =>
  fetch(`${url}/-/signals/events`, {
    method: 'POST',
    body: token,
    headers: {
      'Content-Type': 'application/secevent+jwt',
      Accept: 'application/json',
      ...headers,
    },
  })
