/** The stored record of a reference. Callers without stored references have none of its schema in their bundle. */
import * as z from 'zod/mini'
import { recordIn } from '../../redis/reply.ts'
import { integer } from '../../validators/schema-parts.ts'
import type { SignInFacts } from '../principal.ts'
import { loginSchema } from './login-schema.ts'

/** The record of a reference: the claims that a JWT would contain. */
const referenceRecordSchema = z.strictObject({
  kind: z.enum(['opaque', 'api_key', 'session']),
  /**
   * `jti` of an opaque token, the id of a session, or the id of an API key's present secret. A revocation names it, so
   * the replacement of a revoked credential needs a new one.
   */
  tokenId: z.string(),
  tokenIssuer: z.string(),
  /** The id of the API key. Absent in records of earlier versions. */
  key: z.optional(z.uuid()),
  /** The issuer that vouches for the subject; see `Principal.issuer`. */
  issuer: z.string(),
  subject: z.string(),
  client: z.optional(z.string()),
  tenant: z.optional(z.string()),
  session: z.optional(z.string()),
  roles: z.array(z.string()),
  scopes: z.array(z.string()),
  audiences: z.array(z.string()),
  /** Whole seconds since the epoch. */
  issuedAtSeconds: integer(),
  /** Seconds since the epoch. Null for an API key without expiry. */
  expiresAtSeconds: z.nullable(integer()),
  /** Of a secret of an API key that was revoked or replaced: it is never valid again. Absent: neither. */
  revokedAtSeconds: z.optional(integer()),
  /** `cnf.jkt`. */
  confirmation: z.optional(z.string()),
  /** See `Principal.headers`. Of a session. */
  headers: z.optional(z.array(z.tuple([z.string(), z.string()]))),
  /** Of the user of an opaque token. */
  login: z.optional(loginSchema),
  /** Of a session. */
  signIn: z.optional(z.custom<SignInFacts>((value) => typeof value === 'object')),
})

export type ReferenceRecord = z.infer<typeof referenceRecordSchema>

/**
 * Parts of the storage keys that decide about the record's principal: `keyPart` of each name, and
 * the token's `tokenIdHash`. A script cannot compute them, because Redis has no SHA-256.
 */
const partsSchema = z.strictObject({
  token: z.string(),
  key: z.optional(z.string()),
  issuer: z.string(),
  tokenIssuer: z.string(),
  subject: z.string(),
  client: z.optional(z.string()),
  tenant: z.optional(z.string()),
  session: z.optional(z.string()),
})

const storedSchema = z.strictObject({ record: referenceRecordSchema, parts: partsSchema })

/** Parses what `storedReference` returns. Throws `Unavailable` for any other text. */
export function parseStoredReference(text: unknown): ReferenceRecord {
  return recordIn(text, storedSchema).record
}
