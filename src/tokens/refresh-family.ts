/** Refresh families: the stored data of a session, its states, and the port of the store. */
import { REFRESH_FAMILY_PREFIX } from '../redis/keys.ts'
import { type RevokedBeforeKind, revokedBeforeKey } from '../revocation/revocation.ts'
import * as z from '../validators/zod.ts'
import type { Session } from './access-grant.ts'

/** A {@link Session} as it is stored, as JSON. */
export const sessionSchema = z.strictObject({
  id: z.string(),
  grant: z.strictObject({
    subject: z.string(),
    subjectIssuer: z.optional(z.string()),
    client: z.string(),
    tenant: z.optional(z.string()),
    session: z.optional(z.string()),
    roles: z.array(z.string()),
    scopes: z.array(z.string()),
    audiences: z.array(z.string()).check(z.minLength(1)),
    confirmation: z.optional(z.string()),
  }),
  startedAtSeconds: z.int(),
  expiresAtSeconds: z.number(),
})

/** A family as it is stored. */
export interface RefreshFamily {
  readonly session: Session
  /** base64url SHA-256 of the one current token. */
  readonly current: string
  /** The token before `current` and the time of its use. Undefined before the first use. */
  readonly previous: { readonly hash: string; readonly rotatedAtMs: number } | undefined
  /**
   * True if the family was ended, by a call or by the reuse of a token. None of its tokens is
   * valid.
   */
  readonly ended: boolean
}

/** The state of a presented token in its family. */
export type Standing = 'current' | 'previous' | 'reused' | 'ended'

/**
 * Returns the state of a token. `previous`: the token was used, but so recently that this may be
 * the retry of a client that did not receive the response. `reused`: the token was used before, or
 * is not of this family. The script of `rotate` decides by the same rule.
 */
export function standingOf(
  family: RefreshFamily,
  hash: string,
  { nowMs, graceMs }: { readonly nowMs: number; readonly graceMs: number },
): Standing {
  if (family.ended) return 'ended'
  if (hash === family.current) return 'current'
  const { previous } = family
  if (hash === previous?.hash && nowMs - previous.rotatedAtMs <= graceMs) return 'previous'
  return 'reused'
}

/** The end of a family. It also revokes the access tokens of the session. */
export interface FamilyEnd {
  /** Key of the session's revocation cutoff. */
  readonly revokedBeforeKey: string
  /** Access tokens issued at or before this second are revoked. Whole seconds since the epoch. */
  readonly revokedBeforeSeconds: number
  /**
   * How long the cutoff is needed, in seconds: the longest life of an access token, plus the clock
   * tolerance.
   */
  readonly revokedBeforeTtlSeconds: number
}

/** One use of a token. */
export interface RotationRequest {
  readonly familyHash: string
  readonly presented: string
  /** The new current token and its nonce. Stored only on the first use. */
  readonly successor: string
  readonly nonce: string
  readonly nowMs: number
  readonly graceMs: number
  /** `iat` of the access token. Stored only on the first use. */
  readonly issuedAtSeconds: number
  /** Revocation cutoffs that end the session if they are at or after its start. */
  readonly revokedBeforeKeys: readonly string[]
  readonly startedAtSeconds: number
  /** Written if the token is reused. */
  readonly end: FamilyEnd
}

/**
 * `rotated`: the first use. `replayed`: a retry of it, with the nonce and `iat` of the first use.
 */
export type RotationReply =
  | {
      readonly outcome: 'rotated' | 'replayed'
      readonly nonce: string
      readonly issuedAtSeconds: number
    }
  | { readonly outcome: 'unknown' | 'ended' | 'reused' | 'cut_off' }

/**
 * Port: the refresh families. Each step is atomic. All methods throw `Unavailable` if the store
 * cannot read or write.
 */
export interface RefreshFamilies {
  /** Stores a new family for `ttlSeconds`. Nothing extends its life. */
  open(familyHash: string, family: RefreshFamily, ttlSeconds: number): Promise<void>
  find(familyHash: string): Promise<RefreshFamily | undefined>
  rotate(request: RotationRequest): Promise<RotationReply>
  /** Ends a family and its access tokens. The family stays stored as ended. */
  end(familyHash: string, end: FamilyEnd): Promise<void>
}

/** Returns the key of a family. */
export function refreshFamilyKey(familyHash: string): string {
  return REFRESH_FAMILY_PREFIX + familyHash
}

/**
 * Returns the key of the cutoff that revokes the access tokens of a session. `tokenIssuer` is the
 * gateway.
 */
export function sessionRevokedBeforeKey(session: Session, tokenIssuer: string): Promise<string> {
  return revokedBeforeKey('session', tokenIssuer, session.id)
}

/**
 * Returns the keys of all revocation cutoffs that end a session: its own, that of its client, and
 * those of its tenant and subject. For the last two, both the gateway and the issuer that vouches
 * for the subject apply.
 */
export function sessionRevokedBeforeKeys(session: Session, tokenIssuer: string): Promise<string[]> {
  const { subject, subjectIssuer = tokenIssuer, client, tenant } = session.grant
  const covering: (readonly [RevokedBeforeKind, string, string | undefined])[] = [
    ['session', tokenIssuer, session.id],
    ['client', tokenIssuer, client],
  ]
  for (const issuer of new Set([subjectIssuer, tokenIssuer]))
    covering.push(['tenant', issuer, tenant], ['subject', issuer, subject])
  return Promise.all(
    covering.flatMap(([kind, issuer, value]) =>
      value === undefined ? [] : [revokedBeforeKey(kind, issuer, value)],
    ),
  )
}
