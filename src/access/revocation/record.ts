/** Revocations by operators: the request body, the stored record and the port of the store. */

import * as z from 'zod/mini'
import { issuerName, name, tenantName } from '../../validators/names.ts'
import { createdMembers, type Owned, ownedMembers } from '../../validators/owner.ts'
import type { Records } from '../../validators/page.ts'
import { integer } from '../../validators/schema-parts.ts'

/** One token by its id, or everything issued until now to a session, subject, client or tenant. */
export const REVOCATION_KINDS = ['token', 'session', 'subject', 'client', 'tenant'] as const

/** The body of `POST /-/admin/revocations`. */
export const newRevocationSchema = z
  .strictObject({
    kind: z.enum(REVOCATION_KINDS),
    /** The token's `jti`, or the session, subject, client or tenant. */
    value: name(512),
    /** One of the trusted issuers. Absent: all trusted issuers. */
    issuer: z.optional(issuerName),
    /** For every kind but `tenant`: only what members of this tenant hold. Absent: all of it. */
    tenant: z.optional(tenantName),
    reason: z.optional(name(256)),
  })
  .check(
    z.refine(({ kind, tenant }) => kind !== 'tenant' || tenant === undefined, {
      error: 'must be absent: the value names the tenant',
      path: ['tenant'],
    }),
  )

export type NewRevocation = z.infer<typeof newRevocationSchema>

/** The stored record of a revocation that is in force. Times are seconds since the epoch. */
export const revocationSchema = z.strictObject({
  /** UUIDv7. */
  id: z.uuid(),
  kind: z.enum(REVOCATION_KINDS),
  value: z.string(),
  /** The issuer from the request. Null: all issuers that were trusted at that time. */
  issuer: z.nullable(z.string()),
  /** The issuers that the revocation covers. */
  issuers: z.array(z.string()),
  ...ownedMembers,
  reason: z.nullable(z.string()),
  ...createdMembers,
  /** When everything that the revocation covers has expired. The record is deleted then. */
  expiresAtSeconds: integer(),
})

export type Revocation = z.infer<typeof revocationSchema>

/** The input of a new revocation. The log adds the id and the times. */
export interface RevocationOrder extends NewRevocation, Owned {
  readonly issuers: readonly string[]
  readonly createdBy: string
  readonly createdByName?: string | undefined
  /** The longest life of what the revocation covers, in seconds, except API keys. */
  readonly ttlSeconds: number
}

/**
 * Port: the revocations that are in force. Access that other revocations cover stays revoked when one
 * is removed. So does access that anything but an operator revoked.
 */
export interface RevocationLog extends Records<Revocation, RevocationOrder> {
  /**
   * Returns until when a revocation of the same was in force already: it covers what was issued until this second.
   * Null: a single token is revoked. Undefined: all or a part of it is not revoked. For operators only, who read it.
   */
  revokedUntil(
    order: Pick<RevocationOrder, 'kind' | 'value' | 'issuers' | 'tenant'>,
  ): Promise<number | null | undefined>
}
