/** Converts the record of a reference to a principal. */

import type { Principal } from '../identity/principal.ts'
import { tokenIdHash } from '../identity/token-id.ts'
import { DEFAULT_CLOCK_TOLERANCE_SECONDS } from '../validators/environment.ts'
import type { ReferenceRecord } from './reference.ts'
import type { TokenCheck } from './rejection.ts'

/**
 * How long a record is kept after the expiry of its reference, in seconds, because the clocks of
 * gateways differ.
 */
export const REFERENCE_TOLERANCE_SECONDS = DEFAULT_CLOCK_TOLERANCE_SECONDS

export interface RecordUse {
  /** The requested resource. It must be an audience of the record. */
  readonly audience: string
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}

/**
 * Returns the check that a record fails: `exp` or `aud`, as for a JWT with the same claims. Returns
 * undefined if the record is valid. Does NOT check revocation, nor that the bearer has the key of
 * `confirmation`.
 */
export function failedCheckOf(
  { expiresAtSeconds, audiences }: ReferenceRecord,
  { audience, nowMs }: RecordUse,
): TokenCheck | undefined {
  const endSeconds = expiresAtSeconds ?? Number.POSITIVE_INFINITY
  if (nowMs / 1000 >= endSeconds + REFERENCE_TOLERANCE_SECONDS) return 'exp'
  return audiences.includes(audience) ? undefined : 'aud'
}

/** Returns the principal of a record. Does NOT check the record. */
export async function principalOfRecord(record: ReferenceRecord): Promise<Principal> {
  const { tokenIssuer, tokenId } = record
  return {
    issuer: record.issuer,
    tokenIssuer,
    subject: record.subject,
    client: record.client,
    tenant: record.tenant,
    session: record.session,
    roles: record.roles,
    scopes: record.scopes,
    tokenId,
    tokenIdHash: await tokenIdHash(tokenIssuer, tokenId),
    confirmation: record.confirmation,
    issuedAtSeconds: record.issuedAtSeconds,
    expiresAtSeconds: record.expiresAtSeconds ?? Number.POSITIVE_INFINITY,
  }
}
