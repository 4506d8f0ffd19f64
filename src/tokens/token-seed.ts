/** From a seed to the two UUIDs of an access token: its id, and the token itself if it is opaque. */
import { v4 } from 'uuid'
import type { TokenSeed } from './access-grant.ts'

/** Two UUIDs' worth. */
export const SEED_BYTES = 32
const UUID_BYTES = 16

/** A seed for a token that nobody will ask for again. */
export function randomSeed(): TokenSeed {
  return crypto.getRandomValues(new Uint8Array(SEED_BYTES))
}

/**
 * The UUIDs of a seed, both version 4 (RFC 9562 section 5.4), 122 unpredictable bits each. Neither
 * tells anything of the other, as long as the seed is random or the output of an HMAC. Throws
 * `RangeError` for a seed that is not 32 bytes.
 */
export function seededIds(seed: TokenSeed): {
  readonly tokenId: string
  readonly opaqueToken: string
} {
  if (seed.length !== SEED_BYTES) throw new RangeError('token seed: must be 32 bytes')
  // Copies, because `v4` writes the version into the bytes it is given.
  return {
    tokenId: v4({ random: seed.slice(0, UUID_BYTES) }),
    opaqueToken: v4({ random: seed.slice(UUID_BYTES) }),
  }
}
