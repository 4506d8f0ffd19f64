/** Reproducible random numbers from a seed. Not for secrets. */

const UINT32 = 2 ** 32
/** The golden ratio as a fraction of 2^32: the step of a Weyl sequence that visits every value. */
const WEYL_STEP = 0x9e3779b9
const MIX_1 = 0x85ebca6b
const MIX_2 = 0xc2b2ae35

/**
 * Creates a generator of numbers in [0, 1), identical for equal seeds: a Weyl sequence with a
 * 32-bit mixer.
 */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + WEYL_STEP) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 16), MIX_1)
    mixed = Math.imul(mixed ^ (mixed >>> 13), MIX_2)
    return ((mixed ^ (mixed >>> 16)) >>> 0) / UINT32
  }
}

/** Returns `length` bytes from `random`. */
export function randomBytes(random: () => number, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)))
}
