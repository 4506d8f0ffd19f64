/** Randomness that a seed repeats: no secrets are made of it. */

const UINT32 = 2 ** 32
/** The golden ratio as a fraction of 2^32: the step of a Weyl sequence, which meets every value. */
const WEYL_STEP = 0x9e3779b9
const MIX_1 = 0x85ebca6b
const MIX_2 = 0xc2b2ae35

/** Numbers from 0 to below 1, the same for the same seed: a Weyl sequence through a 32-bit mixer. */
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

/** So many octets out of `random`. */
export function randomBytes(random: () => number, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)))
}
