/** Imports the keys of a key set and selects the key for a token. */
import type { CryptoKey } from 'jose'
import type { Denied } from '../../errors.ts'
import { type Algorithm, type IgnoredKey, sortKeys, type UsableJwk } from '../../validators/jwk.ts'
import { importKey } from './import-key.ts'
import { rejected } from './rejection.ts'

/** One key for one algorithm. Cached tokens refer to it by identity (`===`). */
export interface VerificationKey {
  readonly kid: string | undefined
  readonly algorithm: Algorithm
  readonly cryptoKey: CryptoKey
  /** `exp` of its JWK. It applies to key sets in the configuration. */
  readonly expiresAtSeconds: number | undefined
}

export type KeyRing = ReadonlySet<VerificationKey>

export type { IgnoredKey }

/** The members of an unverified header that select the key. */
export interface KeyHint {
  readonly alg: string
  readonly kid: string | undefined
}

/**
 * Imports the usable keys of a JWK Set for the allowed algorithms (see `sortKeys`), and reports the
 * others. A key that cannot be imported (a point off its curve) is ignored too. Returns undefined if
 * `set` is not a JWK Set.
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
        const imported = key.algorithms.map((algorithm) => importFor(key, algorithm))
        for (const verificationKey of await Promise.all(imported)) ring.add(verificationKey)
      } catch {
        ignored.push({ index: key.index, check: 'import' })
      }
    }),
  )
  return { ring, ignored }
}

async function importFor(
  { kid, jwk, expiresAtSeconds }: UsableJwk,
  algorithm: Algorithm,
): Promise<VerificationKey> {
  return { kid, algorithm, cryptoKey: await importKey(jwk, algorithm), expiresAtSeconds }
}

/**
 * Returns the one key that a token can mean: `kid` and algorithm select it (RFC 7517 section 4.5).
 * Returns undefined if the ring has no key with this `kid`, or if `ignored` lists several keys with it.
 * For a token without a `kid`, returns undefined if the ring has no key for its algorithm. Throws
 * `Denied` if the key with this `kid` is for another algorithm (RFC 8725 section 3.1), or if several
 * keys match.
 */
export function keyFor(
  ring: KeyRing,
  { alg, kid }: KeyHint,
  ignored: readonly IgnoredKey[] = [],
): VerificationKey | undefined {
  const named = [...ring].filter((key) => kid === undefined || key.kid === kid)
  const [match, ...others] = named.filter(({ algorithm }) => algorithm === alg)
  if (others.length > 0) throw rejected('kid_missing')
  const isOther = match === undefined && kid !== undefined && named.length > 0
  if (isOther && !isAmbiguous({ alg, kid }, ignored)) throw rejected('key_algorithm')
  return match
}

/** Creates the refusal of a token with a key that is not in the set, or that is one of several there. */
export function keyNotFound({ kid, alg }: KeyHint, ignored: readonly IgnoredKey[] = []): Denied {
  if (kid === undefined) return rejected('kid_missing')
  return rejected(isAmbiguous({ alg, kid }, ignored) ? 'kid_duplicate' : 'kid_unknown')
}

/** Reports whether several keys of the set have this `kid` and algorithm. */
const isAmbiguous = ({ alg, kid }: KeyHint, ignored: readonly IgnoredKey[]): boolean =>
  ignored.some((key) => key.kid === kid && key.algorithms?.some((name) => name === alg))
