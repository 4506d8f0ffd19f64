/**
 * References: credentials without content (opaque access tokens and API keys). The store has a
 * record of each one, under the SHA-256 of the reference. The reference itself is not stored.
 */
import * as z from 'zod'
import { sha256 } from '../crypto/sha256.ts'

export type ReferenceKind = 'opaque' | 'api_key'

/**
 * A credential that only the store can resolve to a principal. `admit` does so in its round trip.
 */
export interface Reference {
  readonly kind: ReferenceKind
  /** base64url SHA-256 of the whole credential. Its record is stored under this hash. */
  readonly hash: string
  /** The credential itself, which is the cache key in the isolate. Never stored, logged or sent. */
  readonly text: string
}

/** The record of a reference: the claims that a JWT would contain. */
export const referenceRecordSchema = z.strictObject({
  kind: z.enum(['opaque', 'api_key']),
  /**
   * `jti` of an opaque token, or the id of an API key's present secret: a UUID that is not secret.
   * A revocation names it, so the replacement of a revoked credential needs a new one.
   */
  tokenId: z.string(),
  /** The gateway. */
  tokenIssuer: z.string(),
  /** The issuer that vouches for the subject; see `Principal.issuer`. */
  issuer: z.string(),
  subject: z.string(),
  client: z.string().optional(),
  tenant: z.string().optional(),
  session: z.string().optional(),
  roles: z.array(z.string()),
  scopes: z.array(z.string()),
  audiences: z.array(z.string()),
  /** Whole seconds since the epoch. */
  issuedAtSeconds: z.int(),
  /** Seconds since the epoch. Null for an API key without expiry. */
  expiresAtSeconds: z.int().nullable(),
  /** `cnf.jkt`. */
  confirmation: z.string().optional(),
})

export type ReferenceRecord = z.infer<typeof referenceRecordSchema>

/** Port: the records of references. Throws `Unavailable` if the store cannot read or write. */
export interface ReferenceStore {
  /** Stores `record` until it expires. It is valid in every isolate from the next request on. */
  put(hash: string, record: ReferenceRecord): Promise<void>
  find(hash: string): Promise<ReferenceRecord | undefined>
  /**
   * Removes a record. Isolates that have cached it accept the reference for up to 5 minutes, unless
   * it is also revoked.
   */
  remove(hash: string): Promise<void>
}

/**
 * Returns the key of a record. `storedReference` creates its value and `parseStoredReference` reads
 * it.
 */
export function referenceKey(hash: string): string {
  return `pc:reference:${hash}`
}

/** Returns the base64url SHA-256 of a credential. Secrets are stored and looked up by this hash. */
export function credentialHash(credential: string): Promise<string> {
  return sha256(credential)
}
