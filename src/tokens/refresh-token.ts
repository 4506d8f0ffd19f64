/**
 * Refresh tokens: `<family>.<secret>`, base64url of 128 and 256 unpredictable bits. The family stays
 * the same for a session; the secret changes at each use.
 */
import { base64url } from 'jose'
import type { TokenSeed } from './access-grant.ts'
import type { RandomBytes } from './random.ts'
import { credentialHash } from './reference.ts'

const FAMILY_BYTES = 16
const SECRET_BYTES = 32
const NONCE_BYTES = 16
/** Canonical: the last character of either part has bits that must be zero. */
const REFRESH_TOKEN = /^([\w-]{21}[AQgw])\.[\w-]{42}[AEIMQUYcgkosw048]$/

/** A refresh token as it is presented, and as it is known. */
export interface RefreshToken {
  readonly text: string
  /** base64url SHA-256 of the family: what the family is stored under. */
  readonly familyHash: string
  /** base64url SHA-256 of the whole token. */
  readonly hash: string
}

/** What a token that is used up gives way to. */
export interface Successor {
  readonly refreshToken: RefreshToken
  readonly seed: TokenSeed
}

/** The first refresh token of a new family. */
export function firstRefreshToken(random: RandomBytes): Promise<RefreshToken> {
  return known(part(random(FAMILY_BYTES)), part(random(SECRET_BYTES)))
}

/** Undefined for a text that cannot be a refresh token. Does NOT look it up. */
export async function parseRefreshToken(text: string): Promise<RefreshToken | undefined> {
  const family = REFRESH_TOKEN.exec(text)?.[1]
  if (family === undefined) return undefined
  return known(family, text.slice(family.length + 1))
}

/** What makes a successor differ from every other one of the same token; no secret. */
export function newNonce(random: RandomBytes): string {
  return part(random(NONCE_BYTES))
}

/**
 * What follows `token`, for a nonce: HMAC-SHA-256 under the token's own text, so that only who holds
 * the token can tell its successor, and can tell it again. The nonce, which is stored, tells nothing.
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
