/** Bans that operators set and lift. */
import * as z from 'zod'
import { modeSchema } from '../validators/mode.ts'
import { issuerName, name } from './names.ts'
import type { Page, PageQuery } from './page.ts'

export const BAN_KINDS = ['address', 'subject'] as const
/** A year. */
const MAX_BAN_SECONDS = 31_536_000

/** The body of `POST /-/admin/bans`. */
export const newBanSchema = z
  .strictObject({
    kind: z.enum(BAN_KINDS),
    /** An address, of which an IPv6 one stands for its /64; or a subject. */
    value: name(255),
    seconds: z.int().min(1).max(MAX_BAN_SECONDS),
    /** Of a subject only: one of the trusted issuers; absent: every one of them. */
    issuer: issuerName.optional(),
    reason: name(256).optional(),
  })
  .refine(({ kind, issuer }) => kind === 'subject' || issuer === undefined, {
    error: 'an address has no issuer',
    path: ['issuer'],
  })

type NewBan = z.infer<typeof newBanSchema>

/** What is kept of a ban until it ends. Times are seconds since the epoch. */
export const banSchema = z.strictObject({
  /** UUIDv7. */
  id: z.uuid(),
  kind: z.enum(BAN_KINDS),
  /** Normalised. */
  value: z.string(),
  /** As it was asked for; null: an address, or all issuers that were trusted then. */
  issuer: z.string().nullable(),
  issuers: z.array(z.string()),
  /** `observe`: earned while the policy only observed bans; it keeps nobody out. */
  mode: modeSchema.default('enforce'),
  reason: z.string().nullable(),
  createdAtSeconds: z.int(),
  createdBy: z.string(),
  expiresAtSeconds: z.int(),
})

export type Ban = z.infer<typeof banSchema>

/** What a list of bans needs to know of one beside its id and its times. */
export interface BanOrder extends Omit<NewBan, 'issuer'> {
  readonly issuer: string | undefined
  readonly issuers: readonly string[]
  readonly createdBy: string
}

/** Port: the bans that hold. Throws `Unavailable` for what it cannot tell or do. */
export interface BanList {
  /** In force in every isolate from the next request on, and listed: both or neither. */
  create(order: BanOrder): Promise<Ban>
  list(page: PageQuery): Promise<Page<Ban>>
  /** Lifts one; of several over the same, the others hold on. False: no such ban. */
  remove(id: string): Promise<boolean>
}
