/** Authenticates the gateway as a client of an issuer. */
import type { IssuerClient } from '../../validators/issuer-client.ts'
import { signJwt } from './sign-jwt.ts'
import { activeSigningKey, type KeyUse, reportExpiry } from './signing-keys.ts'

/** What authenticates a request. Contains secrets. */
export interface Authentication {
  readonly headers: Readonly<Record<string, string>>
  /** Members of the form. */
  readonly form: Readonly<Record<string, string>>
}

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
/** Long enough for clocks that differ, and too short to be useful to a thief. */
const ASSERTION_SECONDS = 60

type Caller = 'introspection' | 'identity_provider'

/** Returns what the key of a client is for. */
const useOf = ({ issuer }: IssuerClient, dependency: Caller): KeyUse => ({
  variable: 'ISSUER_CLIENTS',
  issuer,
  dependency,
})

/**
 * Authenticates one request: with the client's secret (RFC 6749 section 2.3.1), or with an assertion
 * that its key signs (RFC 7523 section 2.2). Throws `Unavailable` (`no_key`) if the key
 * does not sign now.
 */
export async function authenticateRequest(
  client: IssuerClient,
  nowMs: number,
  caller: Caller,
): Promise<Authentication> {
  const { id } = client
  if ('key' in client) {
    const use = useOf(client, caller)
    const { alg, kid, privateKey } = await activeSigningKey([client.key], nowMs, use)
    const issuedAt = Math.floor(nowMs / 1000)
    const claims = {
      iss: id,
      sub: id,
      aud: client.audience ?? client.issuer,
      iat: issuedAt,
      exp: issuedAt + ASSERTION_SECONDS,
      jti: crypto.randomUUID(),
    }
    const assertion = await signJwt(claims, { alg, kid }, privateKey)
    const form = { client_assertion_type: ASSERTION_TYPE, client_assertion: assertion }
    return { headers: {}, form: { client_id: id, ...form } }
  }
  const { secret, method } = client
  if (method === 'client_secret_post')
    return { headers: {}, form: { client_id: id, client_secret: secret } }
  const credentials = btoa(`${formEncoded(id)}:${formEncoded(secret)}`)
  return { headers: { authorization: `Basic ${credentials}` }, form: {} }
}

/** Encodes a text as `application/x-www-form-urlencoded`. */
const formEncoded = (text: string) => new URLSearchParams([['', text]]).toString().slice(1)

/** Throws `Unavailable` if the client has a key that does not sign now. */
export async function requireKey(
  client: IssuerClient,
  nowMs: number,
  caller: Caller,
): Promise<void> {
  if ('key' in client) await activeSigningKey([client.key], nowMs, useOf(client, caller))
}

/**
 * Returns the check of readiness of the keys of clients, and warns of keys that expire soon. It decides
 * nothing: requests that need no call to such an issuer are answered.
 */
export function clientKeyChecks(
  clients: readonly IssuerClient[],
  now: () => number,
  caller: Caller,
) {
  const keyed = clients.filter((client) => 'key' in client)
  for (const client of keyed) reportExpiry([client.key], now(), useOf(client, caller))
  if (keyed.length === 0) return []
  const check = () => Promise.all(keyed.map((client) => requireKey(client, now(), caller)))
  return [{ name: 'clientKeys', decides: false, check }]
}
