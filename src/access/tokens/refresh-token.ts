/**
 * Refresh tokens: `<family>.<secret>`, base64url of 128 and 256 unpredictable bits. The family
 * stays the same for a session. The secret changes with each use.
 */
import { base64url } from 'jose'
import type { RandomBytes } from '../../crypto/random.ts'
import { hmacSha256 } from '../../crypto/sha256.ts'
import type { TokenSeed } from './access-grant.ts'
import { credentialHash } from './reference.ts'

export const FAMILY_BYTES = 16
const SECRET_BYTES = 32
const NONCE_BYTES = 16
/** Canonical: the unused bits of the last character of each part must be zero. */
const REFRESH_TOKEN = /^([\w-]{21}[AQgw])\.[\w-]{42}[AEIMQUYcgkosw048]$/

export interface RefreshToken {
  readonly text: string
  /** base64url SHA-256 of the family. The family is stored under this hash. */
  readonly familyHash: string
  /** base64url SHA-256 of the whole token. */
  readonly hash: string
}

/** Creates the first refresh token of a new family. Default: a random family. */
export function newRefreshToken(
  random: RandomBytes,
  family: Uint8Array = random(FAMILY_BYTES),
): Promise<RefreshToken> {
  return tokenOf(base64url.encode(family), random(SECRET_BYTES))
}

/** Parses a refresh token. Returns undefined for another format. Does NOT look it up. */
export async function parseRefreshToken(text: string): Promise<RefreshToken | undefined> {
  const family = REFRESH_TOKEN.exec(text)?.[1]
  return family === undefined ? undefined : hashed(family, text)
}

/** Creates a nonce, which makes each successor of the same token different. It is not secret. */
export function newNonce(random: RandomBytes): string {
  return base64url.encode(random(NONCE_BYTES))
}

/**
 * Derives the successor of `token` for a nonce: HMAC-SHA-256 with the token's text as the key. Only
 * the holder of the token can compute its successor, and a retry computes the same one. The nonce
 * is stored, but useless without the token. Returns the seed of the new access token as well.
 */
export async function deriveSuccessor(
  token: RefreshToken,
  nonce: string,
): Promise<{ readonly refreshToken: RefreshToken; readonly seed: TokenSeed }> {
  const derive = await hmacSha256(new TextEncoder().encode(token.text))
  const [family = ''] = token.text.split('.')
  return {
    refreshToken: await tokenOf(family, await derive(`refresh_token ${nonce}`)),
    seed: await derive(`access_token ${nonce}`),
  }
}

function tokenOf(family: string, secret: Uint8Array): Promise<RefreshToken> {
  return hashed(family, `${family}.${base64url.encode(secret)}`)
}

async function hashed(family: string, text: string): Promise<RefreshToken> {
  return { text, familyHash: await credentialHash(family), hash: await credentialHash(text) }
}
