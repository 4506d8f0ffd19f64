/** Detects unsafe Ed25519 public keys (RFC 8032 section 5.1). */

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
  return power((yy - 1n) * (D * yy + 1n), (P - 1n) / 2n) === 1n ? undefined : 'point'
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  let square = base % P
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % P
    square = (square * square) % P
  }
  return result
}
