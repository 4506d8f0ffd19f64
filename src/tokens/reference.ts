/**
 * References: credentials that say nothing by themselves (opaque access tokens and API keys). The
 * store has a record of each, under the SHA-256 of the reference; the reference itself is nowhere.
 */
import * as z from 'zod'
import { sha256 } from './sha256.ts'

export type ReferenceKind = 'opaque' | 'api_key'

/** A credential that only the store can turn into a principal: `admit` does, in its round trip. */
export interface Reference {
  readonly kind: ReferenceKind
  /** base64url SHA-256 of the whole credential: what its record is stored under. */
  readonly hash: string
  /** The credential itself, which the isolate knows it by. Never stored, logged or told. */
  readonly text: string
}

/** What a reference stands for: the claims that a JWT would carry. */
export const referenceRecordSchema = z.strictObject({
  kind: z.enum(['opaque', 'api_key']),
  /**
   * `jti` of an opaque token, `id` of an API key: a UUID, and no secret. What it is revoked by, so a
   * credential that takes the place of a revoked one needs another.
   */
  tokenId: z.string(),
  /** The gateway. */
  tokenIssuer: z.string(),
  /** Who vouches for the subject; see `Principal.issuer`. */
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
  /** Seconds since the epoch; null for an API key that does not expire. */
  expiresAtSeconds: z.int().nullable(),
  /** `cnf.jkt`. */
  confirmation: z.string().optional(),
})

export type ReferenceRecord = z.infer<typeof referenceRecordSchema>

/** Port: where records of references are. Throws `Unavailable` when it cannot tell. */
export interface ReferenceStore {
  /** Keeps `record` until it expires, from the next request on in every isolate. */
  put(hash: string, record: ReferenceRecord): Promise<void>
  find(hash: string): Promise<ReferenceRecord | undefined>
  /** Forgets a record. Isolates that know it go on until it is revoked, too. */
  remove(hash: string): Promise<void>
}

/** The key of a record. Its value is made by `storedReference` and read by `parseStoredReference`. */
export function referenceKey(hash: string): string {
  return `pc:reference:${hash}`
}

/** base64url SHA-256 of a credential: how secrets are stored and looked up. */
export function credentialHash(credential: string): Promise<string> {
  return sha256(credential)
}
