/** From a seed to the two UUIDs of an access token: its id, and the token itself if it is opaque. */
import { v4 } from 'uuid'
import type { AccessGrant, TokenSeed } from './access-grant.ts'

/** Two UUIDs' worth. */
export const SEED_BYTES = 32
const UUID_BYTES = 16

/** A seed for a token that nobody will ask for again. */
export function randomSeed(): TokenSeed {
  return crypto.getRandomValues(new Uint8Array(SEED_BYTES))
}

/**
 * The seed of the token that says exactly this: a retry that asks for another scope, other audiences or
 * another key gets another token, and what the first one opens stays what it was. Throws `RangeError`
 * for a seed that is not 32 bytes.
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
 * The UUIDs of a seed, both version 4 (RFC 9562 section 5.4), 122 unpredictable bits each. Neither
 * tells anything of the other, as long as the seed is random or the output of an HMAC. Throws
 * `RangeError` for a seed that is not 32 bytes.
 */
export function seededIds(seed: TokenSeed): {
  readonly tokenId: string
  readonly opaqueToken: string
} {
  refuseLength(seed)
  // Copies, because `v4` writes the version into the bytes it is given.
  return {
    tokenId: v4({ random: seed.slice(0, UUID_BYTES) }),
    opaqueToken: v4({ random: seed.slice(UUID_BYTES) }),
  }
}

function refuseLength({ length }: TokenSeed): void {
  if (length !== SEED_BYTES) throw new RangeError('token seed: must be 32 bytes')
}
