/** Access that operators take away, and give back: what they say, what is kept, and who keeps it. */
import * as z from 'zod'
import { issuerName, name } from './names.ts'
import type { Page, PageQuery } from './page.ts'

/** What can be revoked: one token by its id, or everything issued to something up to now. */
export const REVOCATION_KINDS = ['token', 'session', 'subject', 'client', 'tenant'] as const

/** The body of `POST /-/admin/revocations`. */
export const newRevocationSchema = z.strictObject({
  kind: z.enum(REVOCATION_KINDS),
  /** The token's `jti`, or the session, subject, client or tenant. */
  value: name(512),
  /** One of the trusted issuers; absent: every one of them. */
  issuer: issuerName.optional(),
  reason: name(256).optional(),
})

export type NewRevocation = z.infer<typeof newRevocationSchema>

/** What is kept of a revocation while it is in force. Times are seconds since the epoch. */
export const revocationSchema = z.strictObject({
  /** UUIDv7. */
  id: z.uuid(),
  kind: z.enum(REVOCATION_KINDS),
  value: z.string(),
  /** As it was asked for; null: all that were trusted then. */
  issuer: z.string().nullable(),
  /** The issuers that it holds for. */
  issuers: z.array(z.string()),
  reason: z.string().nullable(),
  createdAtSeconds: z.int(),
  /** Subject of the operator. */
  createdBy: z.string(),
  /** When it has nothing left to refuse and is forgotten. */
  expiresAtSeconds: z.int(),
})

export type Revocation = z.infer<typeof revocationSchema>

/** What a log needs to know of a revocation beside its id and its times. */
export interface RevocationOrder extends Omit<NewRevocation, 'issuer'> {
  /** As it was asked for. */
  readonly issuer: string | undefined
  readonly issuers: readonly string[]
  readonly createdBy: string
  /** How long whatever it covers may live, without API keys: the log knows of those. */
  readonly ttlSeconds: number
}

/** Port: the revocations that are in force. Throws `Unavailable` for what it cannot tell or do. */
export interface RevocationLog {
  /** In force in every isolate from the next request on, and listed: both or neither. */
  create(order: RevocationOrder): Promise<Revocation>
  /** Undefined: no such revocation. */
  find(id: string): Promise<Revocation | undefined>
  list(page: PageQuery): Promise<Page<Revocation>>
  /**
   * Takes one back. What other revocations cover stays revoked, and so does what was revoked by
   * anything but an operator. False: no such revocation.
   */
  remove(id: string): Promise<boolean>
}

/** Port: ends what was issued, without a record that it could be taken back by. */
export interface CutOffs {
  /** Everything issued up to `atSeconds` is dead, in every isolate from the next request on. */
  cutOff(cutOff: {
    readonly kind: 'client' | 'subject'
    readonly issuer: string
    readonly value: string
    readonly atSeconds: number
    readonly ttlSeconds: number
  }): Promise<void>
}
