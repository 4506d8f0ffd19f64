/** Operator controls of single windows of a limit: override the size, or reset the count. */

import * as z from 'zod/mini'
import { name, tenantName } from '../../validators/names.ts'
import { newOwnerMembers, type Owners, ownerMembers } from '../../validators/owner.ts'
import { integer, wholeNumber } from '../../validators/schema-parts.ts'

/** Selects the windows: the limit, and the party that they count. */
const windowMembers = {
  /** The limit's name in the policy. */
  limit: name(64),
  /** The value that the limit counts by: a subject, client, tenant or address. */
  value: name(512),
}

/**
 * For a limit by subject: the window that the subject has as a member of this tenant. An override
 * without it applies to the subject in every tenant; a reset without it, to the subject without a tenant.
 */
const windowTenant = z.optional(tenantName)

/** The body of `POST /-/admin/limits/overrides`. */
export const newOverrideSchema = z.strictObject({
  ...windowMembers,
  tenant: windowTenant,
  requests: wholeNumber(1, 1_000_000_000),
  reason: z.optional(name(256)),
  ...newOwnerMembers,
})

/** The body of `POST /-/admin/limits/reset`. */
export const windowResetSchema = z.strictObject({
  ...windowMembers,
  issuer: newOwnerMembers.issuer,
  tenant: windowTenant,
})

export type WindowReset = z.infer<typeof windowResetSchema>

/** The stored record of an override. The windows are keys from `limitKeyOf`. */
export const overrideSchema = z.strictObject({
  ...ownerMembers,
  limit: z.string(),
  value: z.string(),
  requests: integer(),
  /** Absent: the operator gave none. */
  reason: z.optional(z.string()),
})

export type LimitOverrideRecord = z.infer<typeof overrideSchema>

/** Port: the overrides in force. */
export type OverrideList = Owners<LimitOverrideRecord>

export interface LimitOverride {
  /** From `limitKeyOf`. */
  readonly key: string
  /** Requests per window, a whole number of at least 1. */
  readonly requests: number
  /** How long it is in force, in whole seconds of at least 1; absent: until it is removed. */
  readonly ttlSeconds?: number | undefined
}

export interface LimitReset {
  /** From `limitKeyOf`. */
  readonly key: string
  /** The window length of the limit's rule. */
  readonly windowSeconds: number
}

/**
 * Port: writes the keys that both limiters read. Each call is one command and is in force in every
 * isolate from the next request on, with two exceptions. An isolate that has cached a refusal
 * repeats it for up to 5 s. An isolate that holds leased units may spend them until its next call.
 * Throws `Unavailable` if the command failed.
 */
export interface LimitControls {
  /** Replaces an existing override. */
  override(override: LimitOverride): Promise<void>
  /** Removes an override, if there is one. */
  lift(key: string): Promise<void>
  /** Deletes the count of a window. */
  reset(window: LimitReset): Promise<void>
}
