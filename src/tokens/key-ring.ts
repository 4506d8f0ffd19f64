/** Keys that were checked and imported: what signatures are verified with. */
import { base64url, importJWK } from 'jose'
import { type Algorithm, sortKeys, type UsableJwk } from '../validators/jwk.ts'
import { rejected } from './rejection.ts'

/** One key for one algorithm. Its identity (`===`) is what a cached token hangs on. */
export interface VerificationKey {
  readonly kid: string | undefined
  readonly algorithm: Algorithm
  readonly cryptoKey: CryptoKey
  /** `exp` of its JWK, which holds for sets that stand in the configuration. */
  readonly expiresAtSeconds: number | undefined
}

export type KeyRing = ReadonlySet<VerificationKey>

/** A key that a set has and the gateway does not use; `check` says why. For logs. */
export interface IgnoredKey {
  readonly index: number
  readonly check: string
}

/** What a token says of its key: data from a stranger. */
export interface KeyHint {
  readonly alg: string
  readonly kid: string | undefined
}

/**
 * Imports the usable keys of a JWK Set for the allowed algorithms (see `sortKeys`), and tells which
 * were ignored. A key that cannot be imported (a point off its curve) is ignored too, so the ring
 * may be empty. Undefined for what is no JWK Set.
 */
export async function importKeys(
  set: unknown,
  allowed: readonly Algorithm[],
): Promise<{ readonly ring: KeyRing; readonly ignored: readonly IgnoredKey[] } | undefined> {
  const sorted = sortKeys(set, allowed)
  if (sorted === undefined) return undefined
  const ring = new Set<VerificationKey>()
  const ignored: IgnoredKey[] = [...sorted.ignored]
  await Promise.all(
    sorted.usable.map(async (key) => {
      try {
        for (const verificationKey of await Promise.all(key.algorithms.map(importer(key)))) {
          ring.add(verificationKey)
        }
      } catch {
        ignored.push({ index: key.index, check: 'import' })
      }
    }),
  )
  return { ring, ignored }
}

const importer =
  ({ kid, jwk, expiresAtSeconds }: UsableJwk) =>
  async (algorithm: Algorithm): Promise<VerificationKey> => {
    const cryptoKey =
      jwk.k === undefined
        ? ((await importJWK({ ...jwk }, algorithm)) as CryptoKey)
        : await crypto.subtle.importKey(
            'raw',
            base64url.decode(jwk.k),
            { name: 'HMAC', hash: 'SHA-256' },
            false,
            ['verify'],
          )
    return { kid, algorithm, cryptoKey, expiresAtSeconds }
  }

/**
 * The one key that a token can mean; undefined if the ring has no such `kid`. Throws `Denied` if
 * it has, and the key is not for this algorithm (RFC 8725 section 3.1), or if a token without a
 * `kid` could mean no key or several.
 */
export function keyFor(ring: KeyRing, { alg, kid }: KeyHint): VerificationKey | undefined {
  let known = false
  let match: VerificationKey | undefined
  for (const key of ring) {
    if (kid !== undefined && key.kid !== kid) continue
    known = true
    if (key.algorithm !== alg) continue
    if (match !== undefined) throw rejected('kid_missing')
    match = key
  }
  if (match !== undefined) return match
  if (kid === undefined) throw rejected('kid_missing')
  if (known) throw rejected('key_algorithm')
  return undefined
}
