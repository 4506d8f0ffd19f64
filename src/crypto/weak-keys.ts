/** Detects keys that are unsafe: public, guessable, or without cryptographic strength. */

/** 32 random bytes have about 30 distinct values, 32 random hex digits about 14. */
const MIN_DISTINCT_VALUES = 8

/** Words of documentation. A random key practically never contains one. */
const PLACEHOLDER =
  /secret|password|change.?me|replace.?me|placeholder|example|your[-_ ]|0123456|1234567|abcdefg|qwerty|test.?test|^<[\w .-]+>$/i

/** The first 96 bits of keys in RFC 7515, 7517, 7520 and 8037, as their `k`, `x` or `n`. */
const PUBLISHED = [
  'AyM1SysPpbyDfgZl',
  'hJtXIZ2uSN5kbQfb',
  'f83OJ3D2xF1Bg8vu',
  'MKBCTNIcKUSDii11',
  '11qYAYKxCrfVS_7T',
  'ofgWCuLjybRlzo0t',
  '0vx7agoebGcQSuuP',
  'n4EPtAOCc9AlkeQH',
]

function isPlaceholder(text: string): boolean {
  return PLACEHOLDER.test(text) || new Set(text).size < MIN_DISTINCT_VALUES
}

/** Reports whether a symmetric key is a placeholder or follows a pattern. */
export function isGuessable(key: Uint8Array): boolean {
  return isPlaceholder(new TextDecoder().decode(key)) || new Set(key).size < MIN_DISTINCT_VALUES
}

/** Reports whether a key is printed in a public document. `member` is the key's `k`, `x` or `n`. */
export function isPublished(member: string): boolean {
  return PUBLISHED.some((beginning) => member.startsWith(beginning))
}

/** All odd primes up to 167, from which the library built moduli of 2048 bits and more. */
// biome-ignore format: a table
const PRIMES = [
  3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
  101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
] as const

const GENERATOR = 65_537

/** For each prime, the residues of the powers of 65537. */
let residues: readonly ReadonlySet<number>[] | undefined

/**
 * Reports whether a big-endian RSA modulus looks factorable. The defective library made primes of
 * the form `k * M + (65537^a mod M)`. Modulo every small prime, its moduli are therefore powers of
 * 65537. A sound key matches with a probability of about 2^-27.
 */
export function isRocaModulus(modulus: Uint8Array): boolean {
  residues ??= PRIMES.map(powersOfGenerator)
  return PRIMES.every((prime, index) => residues?.[index]?.has(remainder(modulus, prime)))
}

function powersOfGenerator(prime: number): ReadonlySet<number> {
  const powers = new Set<number>()
  for (let power = 1; !powers.has(power); power = (power * GENERATOR) % prime) powers.add(power)
  return powers
}

function remainder(bigEndian: Uint8Array, divisor: number): number {
  let rest = 0
  for (const byte of bigEndian) rest = (rest * 256 + byte) % divisor
  return rest
}

/** The prime of the field, and the constant of the curve -x² + y² = 1 + d x² y². */
const P = 2n ** 255n - 19n
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n

const SIGN_BIT = 0x80

/**
 * Returns the fault of an encoded public key of 32 bytes, or undefined if the key is safe:
 *
 * - `encoding`: the coordinate is not below the prime, so one point would have two encodings.
 * - `small_order`: one of the eight points with an order that divides 8. Anyone can create
 *   signatures that verify under these keys, and WebCrypto imports them.
 * - `point`: no point of the curve has this coordinate, so no signature can verify.
 *
 * A point with x = 0 and the sign bit set has small order. Takes about 0.2 ms.
 */
export function ed25519Fault(key: Uint8Array): 'encoding' | 'small_order' | 'point' | undefined {
  const bigEndian = key.toReversed()
  bigEndian[0] = (bigEndian[0] ?? 0) & ~SIGN_BIT
  const hex = Array.from(bigEndian, (byte) => byte.toString(16).padStart(2, '0')).join('')
  const y = BigInt(`0x${hex}`)
  if (y >= P) return 'encoding'
  const yy = (y * y) % P
  // y is 0 in points of order 4, 1 or -1 in those of order 1 and 2. The double of a point of order
  // 8 has y² + x² = 0; with x² = (y² - 1) / (d y² + 1) that is d y⁴ + 2 y² - 1 = 0.
  if ((y * (yy - 1n) * (D * yy * yy + 2n * yy - 1n)) % P === 0n) return 'small_order'
  // Euler's criterion for x²; a quotient is a square if and only if the product is.
  return powerModP((yy - 1n) * (D * yy + 1n), (P - 1n) / 2n) === 1n ? undefined : 'point'
}

function powerModP(base: bigint, exponent: bigint): bigint {
  let result = 1n
  let square = base % P
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % P
    square = (square * square) % P
  }
  return result
}
