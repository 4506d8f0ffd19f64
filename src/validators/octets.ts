/** Numbers and byte strings in JWKs (RFC 7518 section 2). */
import { base64url } from 'jose'
import * as z from 'zod'

/**
 * base64url without padding, decoded to bytes. Unused bits must be 0: each value has one encoding.
 */
export const octets = z
  .string()
  .regex(/^[\w-]+$/, 'base64url')
  .transform((text, context) => {
    try {
      const bytes = base64url.decode(text)
      if (base64url.encode(bytes) === text) return bytes
    } catch {
      // The length is impossible for base64url.
    }
    context.addIssue('base64url')
    return z.NEVER
  })

/** Returns the number of bits of a big-endian number, without leading zeros. */
export function bitLength(bigEndian: Uint8Array): number {
  const start = bigEndian.findIndex((byte) => byte !== 0)
  if (start === -1) return 0
  return (bigEndian.length - start) * 8 - (Math.clz32(bigEndian[start] ?? 0) - 24)
}

/** Returns the value of a big-endian number of at most 6 bytes. */
export function integer(bigEndian: Uint8Array): number {
  return bigEndian.reduce((value, byte) => value * 256 + byte, 0)
}
