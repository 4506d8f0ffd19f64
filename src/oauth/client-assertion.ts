/** `private_key_jwt`: a client that proves who it is by a signature (RFC 7523 section 2.2). */
import { generateKeyPair, SignJWT } from 'jose'
import { Denied } from '../errors.ts'
import { readHeader, readPayload, verifySignature } from '../tokens/jws.ts'
import { importKeys, type KeyHint, type KeyRing, keyFor } from '../tokens/key-ring.ts'
import { sha256 } from '../tokens/sha256.ts'
import { ASSERTION_ALGORITHMS } from '../validators/client.ts'
import {
  ASSERTION_TOLERANCE_SECONDS,
  type AssertionClaims,
  assertionClaims,
  MAX_ASSERTION_AHEAD_SECONDS,
} from '../validators/oauth-assertion.ts'
import type { Client } from './client.ts'

/** A good assertion, which must not be taken twice. */
export interface AssertionUse {
  /** Storage key under which its use is to be remembered: `pc:client-assertion:<hash>`. */
  readonly key: string
  /** For how long; afterwards it is too old for every gateway. */
  readonly ttlSeconds: number
}

export interface ClientAssertionOptions {
  /** What `aud` may be: the issuer identifier and the token endpoint's URL. */
  readonly audiences: readonly string[]
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Checks an assertion; undefined where it is not good for this client. */
export type ClientAssertionVerifier = (
  client: Client | undefined,
  assertion: string,
) => Promise<AssertionUse | undefined>

/** RFC 7523 names no type; a token of another kind has one of its own (RFC 8725 section 3.11). */
const TYPES = new Set([undefined, 'jwt', 'client-authentication+jwt'])

/**
 * Makes the verifier: signed by a key of the client with an asymmetric algorithm, `iss` and `sub` the
 * client, `aud` exactly one and ours, `exp` at most 5 minutes ahead, and a `jti`. A client that is
 * unknown, disabled or has no key that the assertion can mean costs a signature's verification all
 * the same. Does NOT check that the assertion is new: that is for the caller, by `key`.
 */
export function createClientAssertionVerifier({
  audiences,
  now,
}: ClientAssertionOptions): ClientAssertionVerifier {
  let decoy: { readonly key: CryptoKey; readonly token: string } | undefined

  /** Verifies a signature of our own, so that time does not tell whether a client has keys. */
  async function workInVain(): Promise<void> {
    decoy ??= await makeDecoy()
    const { key } = decoy
    const decoyKey = {
      kid: undefined,
      algorithm: 'ES256',
      cryptoKey: key,
      expiresAtSeconds: undefined,
    } as const
    await verifySignature(decoy.token, decoyKey)
  }

  return async function verifyAssertion(client, assertion) {
    try {
      const header = readHeader(assertion)
      // Before anything depends on the client: what is cheap to refuse must tell nothing of it.
      if (!TYPES.has(header.typ?.toLowerCase().replace(/^application\//, ''))) return undefined
      const keys = client === undefined || client.disabled ? undefined : client.jwks
      const imported = keys && (await importKeys(keys, ASSERTION_ALGORITHMS))
      const key = imported && keyOf(imported.ring, header)
      if (key === undefined) {
        await workInVain()
        return undefined
      }
      await verifySignature(assertion, key)
      const claims = assertionClaims.safeParse(readPayload(assertion))
      if (!claims.success || client === undefined) return undefined
      return isFor(client, claims.data) ? await useOf(claims.data) : undefined
    } catch (error) {
      if (error instanceof Denied) return undefined
      throw error
    }
  }

  function isFor(client: Client, { iss, sub, aud, exp, iat, nbf }: AssertionClaims): boolean {
    const nowSeconds = now() / 1000
    const latest = nowSeconds + ASSERTION_TOLERANCE_SECONDS
    return (
      iss === client.id &&
      sub === client.id &&
      audiences.includes(aud) &&
      exp > nowSeconds - ASSERTION_TOLERANCE_SECONDS &&
      exp <= latest + MAX_ASSERTION_AHEAD_SECONDS &&
      (iat ?? 0) <= latest &&
      (nbf ?? 0) <= latest
    )
  }

  async function useOf({ sub, jti, exp }: AssertionClaims): Promise<AssertionUse> {
    const leftSeconds = Math.ceil(exp - now() / 1000)
    return {
      key: `pc:client-assertion:${await sha256(JSON.stringify([sub, jti]))}`,
      // Twice the tolerance: once for the client's clock, once for another gateway's.
      ttlSeconds: Math.max(1, leftSeconds + 2 * ASSERTION_TOLERANCE_SECONDS),
    }
  }
}

/** Whether a token names no key, several, or one for another algorithm: nobody is told which. */
function keyOf(ring: KeyRing, hint: KeyHint) {
  try {
    return keyFor(ring, hint)
  } catch (error) {
    if (error instanceof Denied) return undefined
    throw error
  }
}

async function makeDecoy() {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const token = await new SignJWT({}).setProtectedHeader({ alg: 'ES256' }).sign(privateKey)
  return { key: publicKey, token }
}
