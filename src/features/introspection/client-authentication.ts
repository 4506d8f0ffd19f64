/** Authenticates the gateway as a client of an issuer. */
import { SignJWT } from 'jose'
import { activeKey, importSigningKey } from '../../access/tokens/signing-keys.ts'
import { Misconfigured } from '../../errors.ts'
import type { IssuerClient } from '../../validators/issuer-client.ts'

/** What authenticates a request. Contains secrets. */
export interface Authentication {
  readonly headers: Readonly<Record<string, string>>
  /** Members of the form. */
  readonly form: Readonly<Record<string, string>>
}

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
/** Long enough for clocks that differ, and too short to be useful to a thief. */
const ASSERTION_SECONDS = 60

/**
 * Authenticates one request: with the client's secret (RFC 6749 section 2.3.1), or with an assertion
 * that its key signs (RFC 7523 section 2.2). Throws `Misconfigured` if the key
 * does not sign now.
 */
export async function authenticateRequest(
  client: IssuerClient,
  nowMs: number,
): Promise<Authentication> {
  const { id } = client
  if ('key' in client) {
    const key = activeKey([client.key], nowMs)
    if (key === undefined)
      throw new Misconfigured('ISSUER_CLIENTS', [
        `${client.issuer}: no key of this client signs now`,
      ])
    const { alg, kid, privateKey } = await importSigningKey(key, 'ISSUER_CLIENTS')
    const issuedAt = Math.floor(nowMs / 1000)
    const assertion = await new SignJWT()
      .setProtectedHeader({ alg, kid })
      .setIssuer(id)
      .setSubject(id)
      .setAudience(client.audience ?? client.issuer)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + ASSERTION_SECONDS)
      .setJti(crypto.randomUUID())
      .sign(privateKey)
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
