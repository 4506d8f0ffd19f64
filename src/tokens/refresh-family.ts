/** Refresh families: what is stored of a session, and what the store can do with it in one step. */
import * as z from 'zod'
import { type CutOffKind, cutOffKey } from '../admission/revocation.ts'
import type { Session } from './access-grant.ts'

/** A {@link Session} as it is stored, as JSON. */
export const sessionSchema = z.strictObject({
  id: z.string(),
  grant: z.strictObject({
    subject: z.string(),
    subjectIssuer: z.string().optional(),
    client: z.string(),
    tenant: z.string().optional(),
    session: z.string().optional(),
    roles: z.array(z.string()),
    scopes: z.array(z.string()),
    audiences: z.array(z.string()).min(1),
    confirmation: z.string().optional(),
  }),
  startedAtSeconds: z.int(),
  expiresAtSeconds: z.number(),
})

/** A family as it is stored. */
export interface RefreshFamily {
  readonly session: Session
  /** base64url SHA-256 of the one token that is good. */
  readonly current: string
  /** Of the token that `current` took the place of, and when. Undefined before the first use. */
  readonly previous: { readonly hash: string; readonly rotatedAtMs: number } | undefined
  /** It was ended, or ended itself when a dead token came back: no token of it is good. */
  readonly ended: boolean
}

/** How a presented token stands in its family. */
export type Standing = 'current' | 'previous' | 'reused' | 'ended'

/**
 * How a token stands. `previous`: it has been used, but so recently that this may be a retry of
 * whoever never got the answer. `reused`: somebody else has used it before, or uses it now. The
 * script of `rotate` decides by the same rule.
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

/** The end of a family: what refuses its access tokens as well. */
export interface FamilyEnd {
  /** Key of the session's cut-off. */
  readonly cutOffKey: string
  /** Access tokens issued up to then are dead, whole seconds since the epoch. */
  readonly cutOffSeconds: number
  /** How long the cut-off is needed: the longest life of an access token, plus tolerance. */
  readonly cutOffTtlSeconds: number
}

/** One use of a token. */
export interface RotationRequest {
  readonly familyHash: string
  readonly presented: string
  /** What becomes the current token, if this is the first use; and its nonce. */
  readonly successor: string
  readonly nonce: string
  readonly nowMs: number
  readonly graceMs: number
  /** `iat` of the access token, if this is the first use. */
  readonly issuedAtSeconds: number
  /** Cut-offs that end the session if they are at or after its start. */
  readonly cutOffKeys: readonly string[]
  readonly startedAtSeconds: number
  /** What is written if the token is reused. */
  readonly end: FamilyEnd
}

/** `rotated`: the first use; `replayed`: a retry of it, whose nonce and time these are. */
export type RotationReply =
  | {
      readonly outcome: 'rotated' | 'replayed'
      readonly nonce: string
      readonly issuedAtSeconds: number
    }
  | { readonly outcome: 'unknown' | 'ended' | 'reused' | 'cut_off' }

/** Port: where families are. Each step is atomic; all throw `Unavailable` when they cannot tell. */
export interface RefreshFamilies {
  /** Keeps a new family for `ttlSeconds`, which nothing extends. */
  open(familyHash: string, family: RefreshFamily, ttlSeconds: number): Promise<void>
  find(familyHash: string): Promise<RefreshFamily | undefined>
  rotate(request: RotationRequest): Promise<RotationReply>
  /** Ends a family, which is remembered as ended, and its access tokens. */
  end(familyHash: string, end: FamilyEnd): Promise<void>
}

/** The key of a family. */
export function refreshFamilyKey(familyHash: string): string {
  return `pc:refresh:${familyHash}`
}

/** The cut-off that ends the access tokens of a session of `tokenIssuer`, the gateway. */
export function sessionCutOffKey(session: Session, tokenIssuer: string): Promise<string> {
  return cutOffKey('session', tokenIssuer, session.id)
}

/**
 * Every cut-off that ends a session: its own, that of its client, and those of tenant and subject,
 * by the gateway and by the issuer that vouched for the subject.
 */
export function sessionCutOffKeys(session: Session, tokenIssuer: string): Promise<string[]> {
  const { subject, subjectIssuer = tokenIssuer, client, tenant } = session.grant
  const covering: (readonly [CutOffKind, string, string | undefined])[] = [
    ['session', tokenIssuer, session.id],
    ['client', tokenIssuer, client],
  ]
  for (const issuer of new Set([subjectIssuer, tokenIssuer]))
    covering.push(['tenant', issuer, tenant], ['subject', issuer, subject])
  return Promise.all(
    covering.flatMap(([kind, issuer, value]) =>
      value === undefined ? [] : [cutOffKey(kind, issuer, value)],
    ),
  )
}
