/** Windows of a limit that operators give another size, or start anew. */
import * as z from 'zod'
import { issuerName, name } from './names.ts'
import type { Page, PageQuery } from './page.ts'

/** A year. */
const MAX_OVERRIDE_SECONDS = 31_536_000

/** Which windows: the limit, and whose. */
const windowMembers = {
  /** Its name in the policy. */
  limit: name(64),
  /** Whose requests, as the limit counts by: subject, client, tenant or address. */
  value: name(512),
  /** Not for addresses: one of the trusted issuers; absent: every one of them. */
  issuer: issuerName.optional(),
}

/** The body of `POST /-/admin/limits/overrides`. */
export const newOverrideSchema = z.strictObject({
  ...windowMembers,
  requests: z.int().min(1).max(1_000_000_000),
  /** Absent: until it is lifted. */
  expiresInSeconds: z.int().min(1).max(MAX_OVERRIDE_SECONDS).optional(),
})

type NewOverride = z.infer<typeof newOverrideSchema>

/** The body of `POST /-/admin/limits/reset`. */
export const windowResetSchema = z.strictObject(windowMembers)

export type WindowReset = z.infer<typeof windowResetSchema>

/** What is kept of an override. Times are seconds since the epoch. */
export const overrideSchema = z.strictObject({
  /** UUIDv7. */
  id: z.uuid(),
  limit: z.string(),
  value: z.string(),
  /** As it was asked for; null: an address, or all issuers that were trusted then. */
  issuer: z.string().nullable(),
  requests: z.int(),
  /** Keys of the windows, from `limitKeyOf`. */
  windows: z.array(z.string()),
  createdAtSeconds: z.int(),
  createdBy: z.string(),
  expiresAtSeconds: z.int().nullable(),
})

export type LimitOverrideRecord = z.infer<typeof overrideSchema>

export interface OverrideOrder extends Omit<NewOverride, 'issuer'> {
  readonly issuer: string | undefined
  readonly windows: readonly string[]
  readonly createdBy: string
}

/** Port: the overrides that hold. Throws `Unavailable` for what it cannot tell or do. */
export interface OverrideList {
  /** Takes the place of an earlier override of the same windows. */
  create(order: OverrideOrder): Promise<LimitOverrideRecord>
  /** Undefined: no such override. */
  find(id: string): Promise<LimitOverrideRecord | undefined>
  list(page: PageQuery): Promise<Page<LimitOverrideRecord>>
  /** False: no such override. */
  remove(id: string): Promise<boolean>
}

/** Port: what can be done to one window. Throws `Unavailable` where it was not done. */
export interface WindowControls {
  /** Forgets what was counted. `key` is from `limitKeyOf`. */
  reset(window: { readonly key: string; readonly windowSeconds: number }): Promise<void>
}
