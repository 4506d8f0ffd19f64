/** The form in which the audit trail stores client addresses: `AUDIT_ADDRESSES` and its key. */
import * as z from 'zod'
import { isGuessable } from './secret.ts'

/** The full address, its network, or a keyed hash. */
export const AUDIT_ADDRESS_FORMS = ['full', 'truncated', 'hashed'] as const

/** Operators need the full address to ban one client without its neighbours. */
export const DEFAULT_AUDIT_ADDRESSES = 'full'

export interface AuditAddresses {
  readonly form: (typeof AUDIT_ADDRESS_FORMS)[number]
  /** For `hashed`: the UTF-8 of this text is the key. */
  readonly key: string
}

/** 256 bits if each character has 8 bits; base64 of 32 random bytes has 44 characters. */
const MIN_KEY_CHARACTERS = 32

export const auditAddresses = z.enum(AUDIT_ADDRESS_FORMS, {
  error: 'must be full, truncated or hashed',
})

/** The key must be secret: hashes of all IPv4 addresses can be computed in minutes with it. */
export const auditAddressKey = z
  .string()
  .min(MIN_KEY_CHARACTERS, `must have at least ${MIN_KEY_CHARACTERS} characters`)
  .refine((key) => !isGuessable(new TextEncoder().encode(key)), 'is a placeholder or a pattern')
