/**
 * Records of operators that set a value for windows: overrides of limits, and plans. A window has the
 * value of the newest record that names it, which owns it.
 */

import * as z from 'zod/mini'
import { issuerName } from './names.ts'
import type { Records } from './page.ts'
import { integer, wholeNumber } from './schema-parts.ts'

/**
 * Members of a stored record: the tenant that it concerns, and its owner. Both are absent in records of
 * the platform that concern every tenant, so that earlier versions of the gateway can read them.
 */
export const ownedMembers = {
  /** Absent: the record does not depend on a tenant. */
  tenant: z.optional(z.string()),
  /** Absent: the platform. Only the owner removes a record. */
  owner: z.optional(z.literal('tenant')),
}

/** Members of a stored record: when it was created, in seconds since the epoch, and the operator. */
export const createdMembers = {
  createdAtSeconds: integer(),
  /** Its subject. */
  createdBy: z.string(),
  /** Of a person with a session. Absent: a token or an API key. */
  createdByName: z.optional(z.string()),
}

export type Owned = z.infer<z.ZodMiniObject<typeof ownedMembers>>

/** One year. */
const MAX_SECONDS = 31_536_000

/** Members of the body of a call that creates a record. */
export const newOwnerMembers = {
  /** One of the trusted issuers; absent: all of them. Not allowed for addresses. */
  issuer: z.optional(issuerName),
  /** Absent: in force until it is removed. */
  expiresInSeconds: z.optional(wholeNumber(1, MAX_SECONDS)),
}

/** Members of the stored record. Times are seconds since the epoch. */
export const ownerMembers = {
  /** UUIDv7. */
  id: z.uuid(),
  /** From the request. Null: an address, or all issuers that were trusted at that time. */
  issuer: z.nullable(z.string()),
  ...ownedMembers,
  /** With a tenant: the issuers that the record covers. */
  issuers: z.optional(z.array(z.string())),
  /** Ends of the keys that the record sets. */
  windows: z.array(z.string()),
  ...createdMembers,
  expiresAtSeconds: z.nullable(integer()),
}

export type Owner = z.infer<z.ZodMiniObject<typeof ownerMembers>>

/** What a call sets of a record. The store adds the id and the times. */
type OwnerOrder<Item extends Owner> = Omit<
  Item,
  'id' | 'issuer' | 'issuers' | 'windows' | 'createdAtSeconds' | 'expiresAtSeconds'
> & {
  readonly windows: readonly string[]
  readonly issuers?: readonly string[] | undefined
  readonly issuer?: string | undefined
  readonly expiresInSeconds?: number | undefined
}

/** Port: the records in force. A new one replaces an earlier record of the same windows. */
export interface Owners<Item extends Owner> extends Records<Item, OwnerOrder<Item>> {
  /** Returns the record that owns a window. */
  ownerOf(window: string): Promise<Item | undefined>
}
