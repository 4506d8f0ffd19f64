/** Detects RSA keys of a defective library (ROCA, CVE-2017-15361). */

/** All odd primes up to 167, from which the library built moduli of 2048 bits and more. */
// biome-ignore format: a table
const PRIMES = [
  3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
  101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
] as const

const GENERATOR = 65_537

/** For each prime, the residues of the powers of 65537. Computed on the first call. */
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
