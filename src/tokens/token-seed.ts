/**
 * Derives the two UUIDs of an access token from a seed: its id, and the token itself if it is
 * opaque.
 */
import { v4 } from 'uuid'
import type { AccessGrant, TokenSeed } from './access-grant.ts'

/** The size of two UUIDs. */
export const SEED_BYTES = 32
const UUID_BYTES = 16

/** Creates a random seed, for a token that no retry will request again. */
export function randomSeed(): TokenSeed {
  return crypto.getRandomValues(new Uint8Array(SEED_BYTES))
}

/**
 * Derives the seed of a token with exactly these contents. A retry with another scope, other
 * audiences or another key gets another token, and the first token does not change. Throws
 * `RangeError` if the seed is not 32 bytes.
 */
export async function seedOf(
  seed: TokenSeed,
  { scopes, audiences, confirmation }: AccessGrant,
): Promise<TokenSeed> {
  refuseLength(seed)
  const said = JSON.stringify([scopes, audiences, confirmation ?? null])
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', seed.slice(), algorithm, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(said)))
}

/**
 * Returns the UUIDs of a seed, both version 4 (RFC 9562 section 5.4), with 122 unpredictable bits
 * each. Neither reveals anything about the other if the seed is random or the output of an HMAC.
 * Throws `RangeError` if the seed is not 32 bytes.
 */
export function seededIds(seed: TokenSeed): {
  readonly tokenId: string
  readonly opaqueToken: string
} {
  refuseLength(seed)
  // Copies, because `v4` writes the version into the given bytes.
  return {
    tokenId: v4({ random: seed.slice(0, UUID_BYTES) }),
    opaqueToken: v4({ random: seed.slice(UUID_BYTES) }),
  }
}

function refuseLength({ length }: TokenSeed): void {
  if (length !== SEED_BYTES) throw new RangeError('token seed: must be 32 bytes')
}
