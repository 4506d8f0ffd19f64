/** Secrets of clients: 256 random bits, of which only the SHA-256 is ever kept. */
import { base64url } from 'jose'
import { credentialHash } from '../tokens/reference.ts'
import type { Client, ClientSecretHash } from './client.ts'

const SECRET_BYTES = 32
/** Says what it is to whoever finds one, and to scanners that look for leaked ones. */
const SECRET_PREFIX = 'pcs_'

/** What no secret hashes to: the work for an unknown client is that for a known one. */
const NO_SECRET: ClientSecretHash = { hash: '-'.repeat(43), untilSeconds: null }

/** A secret for a client: `pcs_` and 43 base64url characters. */
export function newClientSecret(): string {
  return SECRET_PREFIX + base64url.encode(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)))
}

/** What is kept of a new secret, which is good until it is rotated. */
export async function clientSecretHash(secret: string): Promise<ClientSecretHash> {
  return { hash: await credentialHash(secret), untilSeconds: null }
}

/**
 * Whether `secret` opens `client`, compared in constant time. For a client that is unknown,
 * disabled or without secrets the answer is false after the same work, so that time tells nobody
 * which it was.
 */
export async function isClientSecret(
  client: Client | undefined,
  secret: string,
  nowMs: number,
): Promise<boolean> {
  const presented = await credentialHash(secret)
  const known = client === undefined || client.disabled ? [] : client.secrets
  let opened = false
  for (const { hash, untilSeconds } of known.length > 0 ? known : [NO_SECRET]) {
    const same = isEqual(presented, hash)
    if (same && (untilSeconds === null || nowMs < untilSeconds * 1000)) opened = true
  }
  return opened
}

/** Looks at every character whatever the first ones say. Both are hashes, of the same length. */
function isEqual(a: string, b: string): boolean {
  let difference = a.length ^ b.length
  for (let at = 0; at < a.length; at++) difference |= a.charCodeAt(at) ^ b.charCodeAt(at)
  return difference === 0
}
