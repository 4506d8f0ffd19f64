/** Numbers and byte strings inside JWKs (RFC 7518 section 2). */
import { base64url } from 'jose'
import * as z from 'zod'

/** base64url without padding, as bytes. */
export const octets = z
  .string()
  .regex(/^[\w-]+$/, 'base64url')
  .transform((text, context) => {
    try {
      return base64url.decode(text)
    } catch {
      context.addIssue('base64url')
      return z.NEVER
    }
  })

/** Bits of a big-endian number, without its leading zeros. */
export function bitLength(bigEndian: Uint8Array): number {
  const start = bigEndian.findIndex((byte) => byte !== 0)
  if (start === -1) return 0
  return (bigEndian.length - start) * 8 - (Math.clz32(bigEndian[start] ?? 0) - 24)
}

/** The value of a big-endian number of at most 6 bytes. */
export function integer(bigEndian: Uint8Array): number {
  return bigEndian.reduce((value, byte) => value * 256 + byte, 0)
}
