/** Secrets of clients: 256 random bits. Only their SHA-256 is stored. */
import { base64url } from 'jose'
import { credentialHash } from '../../access/tokens/reference.ts'
import { equalHashes } from '../../crypto/equal-hashes.ts'
import type { Client, ClientSecretHash } from './client.ts'

const SECRET_BYTES = 32
/** Lets people and scanners recognize a leaked secret. */
const SECRET_PREFIX = 'pcs_'

/** A hash that no secret has. An unknown client then costs the same work as a known one. */
const NO_SECRET: ClientSecretHash = { hash: '-'.repeat(43), untilSeconds: null }

/** Creates a secret: `pcs_` and 43 base64url characters. */
export function newClientSecret(): string {
  return SECRET_PREFIX + base64url.encode(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)))
}

/** Returns the stored form of a new secret, which is valid until it is rotated. */
export async function clientSecretHash(secret: string): Promise<ClientSecretHash> {
  return { hash: await credentialHash(secret), untilSeconds: null }
}

/**
 * Reports whether `secret` is a valid secret of `client`, compared in constant time. Returns false
 * after the same work if the client is unknown, disabled or has no secrets. The response time
 * therefore reveals none of these.
 */
export async function isClientSecret(
  client: Client | undefined,
  secret: string,
  nowMs: number,
): Promise<boolean> {
  const presented = await credentialHash(secret)
  const known = client === undefined || client.disabled ? [] : client.secrets
  let isValid = false
  for (const { hash, untilSeconds } of known.length > 0 ? known : [NO_SECRET]) {
    const same = equalHashes(presented, hash)
    if (same && (untilSeconds === null || nowMs < untilSeconds * 1000)) isValid = true
  }
  return isValid
}
