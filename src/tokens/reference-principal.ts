/** From the record of a reference to a principal. */
import { DEFAULT_CLOCK_TOLERANCE_SECONDS } from '../config.ts'
import type { Principal } from './principal.ts'
import type { ReferenceRecord } from './reference.ts'
import type { TokenCheck } from './rejection.ts'
import { tokenIdHash } from './token-id.ts'

/** A record lives on for so long after its reference, as the gateways' clocks may differ. */
export const REFERENCE_TOLERANCE_SECONDS = DEFAULT_CLOCK_TOLERANCE_SECONDS

export interface RecordUse {
  /** The resource that is asked for: must be among the record's audiences. */
  readonly audience: string
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}

/**
 * The check that a record fails: `exp` or `aud`, as a JWT with its claims would. Undefined where it
 * is good. Does NOT check revocation, nor that the bearer holds the key of `confirmation`.
 */
export function failedCheckOf(
  { expiresAtSeconds, audiences }: ReferenceRecord,
  { audience, nowMs }: RecordUse,
): TokenCheck | undefined {
  const endSeconds = expiresAtSeconds ?? Number.POSITIVE_INFINITY
  if (nowMs / 1000 >= endSeconds + REFERENCE_TOLERANCE_SECONDS) return 'exp'
  return audiences.includes(audience) ? undefined : 'aud'
}

/** The principal of a record, good or not. */
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
