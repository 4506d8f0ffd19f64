/** Operator controls of single windows of a limit: override the size, or reset the count. */
import { issuerName, name } from '../validators/names.ts'
import type { Page, PageQuery } from '../validators/page.ts'
import { wholeNumber } from '../validators/schema-parts.ts'
import * as z from '../validators/zod.ts'

/** One year. */
const MAX_OVERRIDE_SECONDS = 31_536_000

/** Selects the windows: the limit, and the party that they count. */
const windowMembers = {
  /** The limit's name in the policy. */
  limit: name(64),
  /** The value that the limit counts by: a subject, client, tenant or address. */
  value: name(512),
  /** One of the trusted issuers; absent: all of them. Not allowed for addresses. */
  issuer: z.optional(issuerName),
}

/** The body of `POST /-/admin/limits/overrides`. */
export const newOverrideSchema = z.strictObject({
  ...windowMembers,
  requests: wholeNumber(1, 1_000_000_000),
  /** Absent: in force until it is removed. */
  expiresInSeconds: z.optional(wholeNumber(1, MAX_OVERRIDE_SECONDS)),
})

type NewOverride = z.infer<typeof newOverrideSchema>

/** The body of `POST /-/admin/limits/reset`. */
export const windowResetSchema = z.strictObject(windowMembers)

export type WindowReset = z.infer<typeof windowResetSchema>

/** The stored record of an override. Times are seconds since the epoch. */
export const overrideSchema = z.strictObject({
  /** UUIDv7. */
  id: z.uuid(),
  limit: z.string(),
  value: z.string(),
  /**
   * The issuer of the order. Null: the limit counts addresses, or the override covers all issuers
   * that were trusted then.
   */
  issuer: z.nullable(z.string()),
  requests: z.int(),
  /** Keys of the windows, from `limitKeyOf`. */
  windows: z.array(z.string()),
  createdAtSeconds: z.int(),
  createdBy: z.string(),
  expiresAtSeconds: z.nullable(z.int()),
})

export type LimitOverrideRecord = z.infer<typeof overrideSchema>

export interface OverrideOrder extends Omit<NewOverride, 'issuer'> {
  readonly issuer: string | undefined
  readonly windows: readonly string[]
  readonly createdBy: string
}

/** Port: the overrides in force. Throws `Unavailable` if it cannot read or write them. */
export interface OverrideList {
  /** Creates an override. It replaces an earlier override of the same windows. */
  create(order: OverrideOrder): Promise<LimitOverrideRecord>
  /** Returns undefined if there is no such override. */
  find(id: string): Promise<LimitOverrideRecord | undefined>
  list(page: PageQuery): Promise<Page<LimitOverrideRecord>>
  /** Returns false if there is no such override. */
  remove(id: string): Promise<boolean>
}

/** Port: operations on one window. Throws `Unavailable` if the operation was not done. */
export interface WindowControls {
  /** Deletes the count of a window. `key` is from `limitKeyOf`. */
  reset(window: { readonly key: string; readonly windowSeconds: number }): Promise<void>
}
