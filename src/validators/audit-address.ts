/** How much of a client's address the audit trail gets to know: `AUDIT_ADDRESSES` and its key. */
import * as z from 'zod'
import { isGuessable } from './secret.ts'

/** Whole, the network it is in, or a keyed hash of it. */
export const AUDIT_ADDRESS_FORMS = ['full', 'truncated', 'hashed'] as const

/** Who reads the trail wants to ban the one and not the neighbours. */
export const DEFAULT_AUDIT_ADDRESSES = 'full'

export interface AuditAddresses {
  readonly form: (typeof AUDIT_ADDRESS_FORMS)[number]
  /** For `hashed`: its UTF-8 is the key. */
  readonly key: string
}

/** 256 bits, if each character has 8 of them; base64 of 32 random bytes has 44. */
const MIN_KEY_CHARACTERS = 32

export const auditAddresses = z.enum(AUDIT_ADDRESS_FORMS, {
  error: 'must be full, truncated or hashed',
})

/** All addresses of IPv4 are hashed in minutes: whoever knows the key knows the addresses. */
export const auditAddressKey = z
  .string()
  .min(MIN_KEY_CHARACTERS, `must have at least ${MIN_KEY_CHARACTERS} characters`)
  .refine((key) => !isGuessable(new TextEncoder().encode(key)), 'is a placeholder or a pattern')
