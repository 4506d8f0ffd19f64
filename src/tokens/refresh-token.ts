/**
 * Refresh tokens: `<family>.<secret>`, base64url of 128 and 256 unpredictable bits. The family
 * stays the same for a session. The secret changes with each use.
 */
import { base64url } from 'jose'
import type { RandomBytes } from '../crypto/random.ts'
import type { TokenSeed } from './access-grant.ts'
import { credentialHash } from './reference.ts'

const FAMILY_BYTES = 16
const SECRET_BYTES = 32
const NONCE_BYTES = 16
/** Canonical: the unused bits of the last character of each part must be zero. */
const REFRESH_TOKEN = /^([\w-]{21}[AQgw])\.[\w-]{42}[AEIMQUYcgkosw048]$/

/** A refresh token and its hashes. */
export interface RefreshToken {
  readonly text: string
  /** base64url SHA-256 of the family. The family is stored under this hash. */
  readonly familyHash: string
  /** base64url SHA-256 of the whole token. */
  readonly hash: string
}

/** The values that replace a used token. */
export interface Successor {
  readonly refreshToken: RefreshToken
  readonly seed: TokenSeed
}

/** Creates the first refresh token of a new family. */
export function firstRefreshToken(random: RandomBytes): Promise<RefreshToken> {
  return known(part(random(FAMILY_BYTES)), part(random(SECRET_BYTES)))
}

/**
 * Parses a refresh token. Returns undefined if the text does not have the format of one. Does NOT
 * look it up.
 */
export async function parseRefreshToken(text: string): Promise<RefreshToken | undefined> {
  const family = REFRESH_TOKEN.exec(text)?.[1]
  if (family === undefined) return undefined
  return known(family, text.slice(family.length + 1))
}

/** Creates a nonce, which makes each successor of the same token different. It is not secret. */
export function newNonce(random: RandomBytes): string {
  return part(random(NONCE_BYTES))
}

/**
 * Derives the successor of `token` for a nonce: HMAC-SHA-256 with the token's text as the key. Only
 * the holder of the token can compute its successor, and a retry computes the same one. The nonce
 * is stored, but useless without the token.
 */
export async function successorOf(token: RefreshToken, nonce: string): Promise<Successor> {
  const bytes = new TextEncoder().encode(token.text)
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', bytes, algorithm, false, ['sign'])
  const derive = async (purpose: string) =>
    new Uint8Array(
      await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(`${purpose} ${nonce}`)),
    )
  const [family = ''] = token.text.split('.')
  return {
    refreshToken: await known(family, part(await derive('refresh_token'))),
    seed: await derive('access_token'),
  }
}

async function known(family: string, secret: string): Promise<RefreshToken> {
  const text = `${family}.${secret}`
  return { text, familyHash: await credentialHash(family), hash: await credentialHash(text) }
}

function part(bytes: Uint8Array): string {
  return base64url.encode(bytes)
}
