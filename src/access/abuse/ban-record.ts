/** Bans that operators create and lift: the request body, the stored record and the store's port. */

import * as z from 'zod/mini'
import { modeSchema } from '../../validators/mode.ts'
import { issuerName, name, tenantName } from '../../validators/names.ts'
import { createdMembers, type Owned, ownedMembers } from '../../validators/owner.ts'
import type { Records } from '../../validators/page.ts'
import { integer, wholeNumber } from '../../validators/schema-parts.ts'
import { BAN_SCOPES } from './ban.ts'

export const BAN_KINDS = ['address', 'subject'] as const
/** One year. */
const MAX_BAN_SECONDS = 31_536_000

/** The body of `POST /-/admin/bans`. */
export const newBanSchema = z
  .strictObject({
    kind: z.enum(BAN_KINDS),
    /** An address or a subject. An IPv6 address represents its /64 network. */
    value: name(255),
    seconds: wholeNumber(1, MAX_BAN_SECONDS),
    /** For a subject only: one of the trusted issuers. Absent: all trusted issuers. */
    issuer: z.optional(issuerName),
    /** For a subject only: bans it as a member of this tenant. Absent: whatever its tenant is. */
    tenant: z.optional(tenantName),
    reason: z.optional(name(256)),
  })
  .check(
    z.refine(({ kind, issuer }) => kind === 'subject' || issuer === undefined, {
      error: 'an address has no issuer',
      path: ['issuer'],
    }),
    z.refine(({ kind, tenant }) => kind === 'subject' || tenant === undefined, {
      error: 'an address has no tenant',
      path: ['tenant'],
    }),
  )

/** The stored record of a ban until it ends. Times are seconds since the epoch. */
export const banSchema = z.strictObject({
  /** UUIDv7. */
  id: z.uuid(),
  kind: z.enum(BAN_KINDS),
  /** The normalized address, or the subject. */
  value: z.string(),
  /** From the request. Null: an address, or all issuers that were trusted at that time. */
  issuer: z.nullable(z.string()),
  issuers: z.array(z.string()),
  ...ownedMembers,
  /** `observe`: earned while the policy only observed bans, so it refuses no request. */
  mode: z._default(modeSchema, 'enforce'),
  /** Of an address. */
  refuses: z._default(z.enum(BAN_SCOPES), 'everything'),
  reason: z.nullable(z.string()),
  ...createdMembers,
  expiresAtSeconds: integer(),
})

export type Ban = z.infer<typeof banSchema>

/** The input of a new ban. The list adds the id and the times. */
export interface BanOrder extends z.infer<typeof newBanSchema>, Owned {
  readonly issuers: readonly string[]
  readonly createdBy: string
  readonly createdByName?: string | undefined
}

/** Port: the bans in force. Other bans of the same value stay in force when one is removed. */
export interface BanList extends Records<Ban, BanOrder> {
  /** Returns the second until which the same is banned already. Undefined: all or a part of it is not banned. */
  bannedUntil(
    order: Pick<BanOrder, 'kind' | 'value' | 'issuers' | 'tenant'>,
  ): Promise<number | undefined>
}
