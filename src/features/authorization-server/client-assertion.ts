/** `private_key_jwt`: authenticates a client by a signed assertion (RFC 7523 section 2.2). */
import { base64url, type JWK } from 'jose'
import { MAX_GATEWAY_SKEW_SECONDS } from '../../access/tokens/dpop.ts'
import { keyParameters } from '../../access/tokens/import-key.ts'
import { readHeader, readPayload, verifySignature } from '../../access/tokens/jws.ts'
import { importKeys } from '../../access/tokens/key-ring.ts'
import { sha256 } from '../../crypto/sha256.ts'
import { Denied } from '../../errors.ts'
import type { ClientAssertionCheck } from '../../problems/checks.ts'
import { mediaType } from '../../validators/issuer.ts'
import { isSameKey, MIN_RSA_BITS } from '../../validators/jwk.ts'
import type { Client } from './client.ts'
import {
  ASSERTION_AHEAD_SECONDS,
  ASSERTION_TOLERANCE_SECONDS,
  type AssertionClaims,
  assertionClaims,
  MAX_ASSERTION_SECONDS,
  MAX_UNDATED_ASSERTION_SECONDS,
} from './schemas/assertion-claims.ts'
import {
  type ASSERTION_ALGORITHMS,
  FAPI_ALGORITHMS,
  type SecurityProfile,
} from './schemas/client.ts'

/** The record of the use of an assertion, which must not be accepted twice. */
export interface AssertionUse {
  /** Identifies the assertion: base64url SHA-256 of its client and its `jti`. */
  readonly id: string
  /** After it, the assertion is too old for every gateway. */
  readonly ttlSeconds: number
}

export interface ClientAssertionOptions {
  /** Values of `aud` that every endpoint accepts: first the issuer identifier, then others. */
  readonly audiences: readonly string[]
  /** Its rules for assertions apply to every client. Undefined: to clients with a profile. */
  readonly profile?: SecurityProfile | undefined
  readonly now: () => number
}

type AssertionAlgorithm = (typeof ASSERTION_ALGORITHMS)[number]

/** `kty` of the keys of each algorithm. */
const KEY_TYPES: Readonly<Record<AssertionAlgorithm, string>> = {
  ES256: 'EC',
  Ed25519: 'OKP',
  EdDSA: 'OKP',
  RS256: 'RSA',
  PS256: 'RSA',
}

/** RFC 7523 defines no type. A token of another kind has its own type (RFC 8725 section 3.11). */
const TYPES = new Set([undefined, 'jwt', 'client-authentication+jwt'])

/**
 * Creates the verifier. It returns the failed check, which the client must not learn, or the use of a valid assertion. An assertion
 * is valid if a key of the client signed it with an asymmetric
 * algorithm, `iss` and `sub` are the client id, each `aud` is one of `audiences` or the called endpoint, and it has a
 * `jti`. The time from `iat` to `exp` is at most one hour; without `iat`, `exp` is at most 5
 * minutes ahead. Does NOT check for replay: the caller must record `id` for `ttlSeconds`.
 *
 * If the client is unknown, disabled or has no matching key, the check takes as long as for a wrong
 * signature: one key import and one verification, with a decoy key of the same algorithm.
 */
export function createClientAssertionVerifier({ audiences, profile, now }: ClientAssertionOptions) {
  // Keys, not promises: a request must not await a promise of another request.
  const decoys = new Map<AssertionAlgorithm, JWK>()

  async function decoyFor(alg: AssertionAlgorithm): Promise<JWK> {
    const decoy = decoys.get(alg) ?? (await makeDecoy(alg))
    decoys.set(alg, decoy)
    return decoy
  }

  return async function verifyAssertion(
    client: Client | undefined,
    assertion: string,
    endpoint: string,
  ): Promise<AssertionUse | ClientAssertionCheck> {
    let failed: ClientAssertionCheck = 'signature'
    try {
      const { typ, alg, kid } = readHeader(assertion)
      // Before anything depends on the client: a cheap refusal must not reveal whether it exists.
      if (!TYPES.has(typ && mediaType(typ))) return 'type'
      if (!isAssertionAlgorithm(alg)) return 'type'
      const jwk = client === undefined || client.disabled ? undefined : selectKey(client, alg, kid)
      if (jwk === undefined) failed = 'key'
      const imported = await importKeys({ keys: [jwk ?? (await decoyFor(alg))] }, [alg])
      const [key] = imported?.ring ?? []
      if (key === undefined) return 'key'
      await verifySignature(assertion, key)
      const payload = readPayload(assertion)
      const claims = assertionClaims.safeParse(payload)
      if (client === undefined || jwk === undefined) return 'key'
      if (!claims.success) return 'claims'
      return (
        checkClaims(client, claims.data, endpoint) ??
        checkProfile(client, alg, payload.aud) ??
        (await createUse(claims.data))
      )
    } catch (error) {
      if (error instanceof Denied) return failed
      throw error
    }
  }

  function checkClaims(
    client: Client,
    { iss, sub, aud, exp, iat, nbf }: AssertionClaims,
    endpoint: string,
  ): ClientAssertionCheck | undefined {
    const nowSeconds = now() / 1000
    const latest = nowSeconds + ASSERTION_AHEAD_SECONDS
    if (iss !== client.id || sub !== client.id) return 'issuer'
    // With the name of another server, each server could use the assertion at the other one.
    if (!aud.every((name) => name === endpoint || audiences.includes(name))) return 'audience'
    if (exp <= nowSeconds - ASSERTION_TOLERANCE_SECONDS) return 'expired'
    if ((iat ?? 0) > latest || (nbf ?? 0) > latest) return 'future'
    const latestEnd =
      iat === undefined ? latest + MAX_UNDATED_ASSERTION_SECONDS : iat + MAX_ASSERTION_SECONDS
    return exp > latestEnd ? 'lifetime' : undefined
  }

  /**
   * The rules of FAPI 2.0: `aud` is the issuer as text (section 5.3.2.1), and no RSA signature with PKCS
   * #1 padding (section 5.4.1).
   */
  function checkProfile(
    client: Client,
    alg: AssertionAlgorithm,
    aud: unknown,
  ): ClientAssertionCheck | undefined {
    if ((client.profile ?? profile) !== 'fapi2') return undefined
    if (aud !== audiences[0]) return 'audience'
    return FAPI_ALGORITHMS.some((each) => each === alg) ? undefined : 'type'
  }

  async function createUse({ sub, jti, exp }: AssertionClaims): Promise<AssertionUse> {
    const leftSeconds = Math.ceil(exp - now() / 1000)
    return {
      id: await sha256(JSON.stringify([sub, jti])),
      // The last moment at which another gateway accepts it.
      ttlSeconds: Math.max(1, leftSeconds + ASSERTION_TOLERANCE_SECONDS + MAX_GATEWAY_SKEW_SECONDS),
    }
  }
}

/** Returns the only registered key that matches the assertion; undefined for none or several. */
function selectKey(
  client: Client,
  alg: AssertionAlgorithm,
  kid: string | undefined,
): JWK | undefined {
  const [key, ...others] = (client.jwks?.keys ?? []).filter(
    (jwk) =>
      (kid === undefined || jwk.kid === kid) &&
      (jwk.alg === undefined ? jwk.kty === KEY_TYPES[alg] : jwk.alg === alg),
  )
  return key && others.every((other) => isSameKey(other as JsonWebKey, key as JsonWebKey))
    ? key
    : undefined
}

/** Creates a public key that verifies no signature. A random modulus needs no search for primes. */
async function makeDecoy(alg: AssertionAlgorithm): Promise<JWK> {
  if (KEY_TYPES[alg] !== 'RSA') {
    const pair = await crypto.subtle.generateKey(keyParameters(alg), true, ['sign', 'verify'])
    const exported = await crypto.subtle.exportKey('jwk', (pair as CryptoKeyPair).publicKey)
    const { kty, crv, x, y } = exported as JsonWebKey
    return { kty, crv, x, y } as JWK
  }
  const modulus = crypto.getRandomValues(new Uint8Array(MIN_RSA_BITS / 8))
  modulus[0] = (modulus[0] ?? 0) | 0x80
  modulus[modulus.length - 1] = (modulus.at(-1) ?? 0) | 1
  return { kty: 'RSA', n: base64url.encode(modulus), e: 'AQAB' }
}

function isAssertionAlgorithm(alg: string): alg is AssertionAlgorithm {
  return Object.hasOwn(KEY_TYPES, alg)
}
