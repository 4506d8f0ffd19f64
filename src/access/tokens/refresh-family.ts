/** Refresh families: the stored data of a session, its states, and the port of the store. */

import * as z from 'zod/mini'
import type { RedisKeys } from '../../redis/keys.ts'
import { MAX_ACCESS_TOKEN_SECONDS } from '../../validators/access-token.ts'
import { integer } from '../../validators/schema-parts.ts'
import { REVOCATION_MARGIN_SECONDS, revokedBeforeKey } from '../revocation/revocation.ts'
import { accessGrantSchema } from './access-grant.ts'

/** A login that refresh tokens extend. */
export const sessionSchema = z.strictObject({
  /** `sid`: a UUID. */
  id: z.string(),
  /** The most that any token of this session may be granted. */
  grant: accessGrantSchema,
  /** Whole seconds since the epoch. A revocation cutoff at or after it ends the session. */
  startedAtSeconds: integer(),
  /** The absolute end of the session, in seconds since the epoch. Nothing extends it. */
  expiresAtSeconds: z.number(),
})

export type Session = Readonly<z.output<typeof sessionSchema>>

export interface RefreshFamily {
  readonly session: Session
  /** base64url SHA-256 of the one current token. */
  readonly current: string
  /** The token before `current` and the time of its use. Undefined before the first use. */
  readonly previous: { readonly hash: string; readonly rotatedAtMs: number } | undefined
  /** Whether a call or the reuse of a token has ended the family. */
  readonly ended: boolean
}

/**
 * The status of a presented token in its family. `previous`: the token was used, but so recently
 * that this may be the retry of a client that did not receive the response. `reused`: the token was
 * used before, or is not of this family.
 */
export type RefreshTokenStatus = 'current' | 'previous' | 'reused' | 'ended'

/** Returns the status of a token. The script of `rotate` decides by the same rule. */
export function statusOf(
  family: RefreshFamily,
  hash: string,
  { nowMs, graceMs }: { readonly nowMs: number; readonly graceMs: number },
): RefreshTokenStatus {
  if (family.ended) return 'ended'
  if (hash === family.current) return 'current'
  const { previous } = family
  if (hash === previous?.hash && nowMs - previous.rotatedAtMs <= graceMs) return 'previous'
  return 'reused'
}

/** The revocation cutoff of a session. It revokes the access tokens when the family ends. */
export interface FamilyEnd {
  readonly revokedBeforeKey: string
  /** Whole seconds since the epoch. */
  readonly revokedBeforeSeconds: number
  readonly revokedBeforeTtlSeconds: number
  /** The subject of the session. Absent: a cluster stores the cutoff in every lane. */
  readonly subject?: string
}

/**
 * Returns a cutoff at the end of the session. It covers all tokens of the session, including those
 * that a gateway with a fast clock has yet to issue.
 */
export async function familyEnd(
  keys: RedisKeys,
  issuer: string,
  { id, grant, expiresAtSeconds }: Session,
): Promise<FamilyEnd> {
  return {
    revokedBeforeKey: await revokedBeforeKey(keys, 'session', issuer, id),
    revokedBeforeSeconds: Math.ceil(expiresAtSeconds),
    revokedBeforeTtlSeconds: MAX_ACCESS_TOKEN_SECONDS + REVOCATION_MARGIN_SECONDS,
    subject: grant.subject,
  }
}

/** One use of a token. */
export interface RotationRequest {
  readonly familyHash: string
  readonly presented: string
  /** Hash of the new current token. This, its nonce and the `iat` are stored on the first use. */
  readonly successor: string
  readonly nonce: string
  readonly issuedAtSeconds: number
  readonly nowMs: number
  readonly graceMs: number
  /** Revocation cutoffs that end the session if they are at or after its start. */
  readonly revokedBeforeKeys: readonly string[]
  readonly startedAtSeconds: number
  readonly end: FamilyEnd
}

/** `rotated`: the first use. `replayed`: a retry, with the nonce and `iat` of the first use. */
export type RotationReply =
  | {
      readonly outcome: 'rotated' | 'replayed'
      readonly nonce: string
      readonly issuedAtSeconds: number
    }
  | { readonly outcome: 'unknown' | 'ended' | 'reused' | 'cut_off' }

/** Port: the refresh families. Each step is atomic. Throws `Unavailable` if the store fails. */
export interface RefreshFamilies {
  /** The names under which this store keeps what requests name. */
  readonly keys: RedisKeys
  /** As of `ReferenceStore`, for the names of families. */
  draw?(subject: string, create: (attempt: number) => string): string
  /** Whether a call that failed may have ended a family, and must complete that when it is repeated. */
  readonly mayBeIncomplete?: boolean
  /** Nothing extends the life of a family. */
  open(familyHash: string, family: RefreshFamily, ttlSeconds: number): Promise<void>
  find(familyHash: string): Promise<RefreshFamily | undefined>
  rotate(request: RotationRequest): Promise<RotationReply>
  /** The family stays stored as ended. */
  end(familyHash: string, end: FamilyEnd): Promise<void>
}
