/**
 * References: credentials without content (opaque access tokens, API keys, and browser sessions). The store has a
 * record of each one, under the SHA-256 of the reference. The reference itself is not stored.
 */

import { sha256 } from '../../crypto/sha256.ts'
import type { TokenCheck } from '../../problems/checks.ts'
import { keyPart } from '../../redis/key-part.ts'
import { DEFAULT_CLOCK_TOLERANCE_SECONDS } from '../../validators/issuer.ts'
import type { Principal } from '../principal.ts'
import { tokenIdHash } from '../token-id.ts'
import type { ReferenceRecord } from './reference-record.ts'

export type { ReferenceRecord }

/** References that callers present as bearer tokens. */
export type BearerReferenceKind = 'opaque' | 'api_key'
export type ReferenceKind = BearerReferenceKind | 'session'

/** A credential that only the store can resolve. `admit` does so in its round trip. */
export interface Reference {
  readonly kind: ReferenceKind
  /** base64url SHA-256 of the whole credential. */
  readonly hash: string
  /** The credential itself. Never stored, logged or sent. */
  readonly text: string
}

/** Port: the records of references. Throws `Unavailable` if the store cannot read or write. */
export interface ReferenceStore {
  /**
   * Returns the first secret for this subject that the store finds without a detour; see `Lanes.draw`. Default:
   * `create(0)`.
   */
  draw?(subject: string, create: (attempt: number) => string): string
  put(hash: string, record: ReferenceRecord): Promise<void>
  find(hash: string): Promise<ReferenceRecord | undefined>
  /** Removes a record. Isolates may use a cached copy for 5 minutes, unless it is also revoked. */
  remove(hash: string): Promise<void>
}

/** Returns the base64url SHA-256 of a credential. Secrets are stored and looked up by this hash. */
export function credentialHash(credential: string): Promise<string> {
  return sha256(credential)
}

/** Returns the text to store for a record: JSON of `{ record, parts }`. */
export async function storedReference(record: ReferenceRecord): Promise<string> {
  const { tokenIssuer, issuer, subject, client, tenant, session } = record
  const part = async (text: string | undefined) => text && (await keyPart(text))
  const parts = {
    token: await tokenIdHash(tokenIssuer, record.tokenId),
    key: record.key,
    issuer: await keyPart(issuer),
    tokenIssuer: await keyPart(tokenIssuer),
    subject: await keyPart(subject),
    client: await part(client),
    tenant: await part(tenant),
    session: await part(session),
  }
  return JSON.stringify({ record, parts })
}

/** How long a record is kept after its expiry, because the clocks of gateways differ. */
export const REFERENCE_TOLERANCE_SECONDS = DEFAULT_CLOCK_TOLERANCE_SECONDS

/** A session ends early, never late: its idle time is a promise to its user. */
export const toleranceSeconds = (isSession: boolean): number =>
  isSession ? 0 : REFERENCE_TOLERANCE_SECONDS

/**
 * Returns the check that a record fails, as for a JWT with the same claims. Does NOT check
 * revocations by operators, nor that the bearer has the key of `confirmation`.
 */
export function checkRecord(
  { kind, expiresAtSeconds, revokedAtSeconds, audiences }: ReferenceRecord,
  { audience, nowMs }: { readonly audience: string; readonly nowMs: number },
): TokenCheck | undefined {
  if (revokedAtSeconds !== undefined) return 'revoked'
  const endSeconds = expiresAtSeconds ?? Number.POSITIVE_INFINITY
  if (nowMs / 1000 >= endSeconds + toleranceSeconds(kind === 'session')) return 'exp'
  return audiences.includes(audience) ? undefined : 'aud'
}

/** Returns the principal of a record, with frozen lists as that of a JWT. Does NOT check the record. */
export async function principalOfRecord(record: ReferenceRecord): Promise<Principal> {
  const { tokenIssuer, tokenId } = record
  return {
    issuer: record.issuer,
    tokenIssuer,
    subject: record.subject,
    key: record.key,
    client: record.client,
    tenant: record.tenant,
    session: record.session,
    roles: Object.freeze(record.roles),
    scopes: Object.freeze(record.scopes),
    audiences: Object.freeze(record.audiences),
    tokenId,
    tokenIdHash: await tokenIdHash(tokenIssuer, tokenId),
    confirmation: record.confirmation,
    issuedAtSeconds: record.issuedAtSeconds,
    expiresAtSeconds: record.expiresAtSeconds ?? Number.POSITIVE_INFINITY,
    ...(record.headers !== undefined && { headers: record.headers }),
    ...(record.login !== undefined && { login: record.login }),
    ...(record.signIn !== undefined && { signIn: record.signIn }),
  }
}
