/** The port of the store for browser sessions and for logins in progress. */
import * as z from 'zod/mini'
import type { ReferenceRecord } from '../../access/tokens/reference.ts'
import { integer } from '../../validators/schema-parts.ts'

/** What the list of sessions shows to their user. */
export const sessionDetailsSchema = z.strictObject({
  createdAtSeconds: integer(),
  /** The beginning of the `User-Agent` header at the login. */
  userAgent: z.optional(z.string()),
  /** `sid` of the provider. */
  providerSession: z.optional(z.string()),
})

/** Where the browser was at the login, as the platform says. Kept apart, because earlier versions do not know it. */
export const sessionPlaceSchema = z.object({
  city: z.optional(z.string()),
  /** ISO 3166-1. */
  country: z.optional(z.string()),
})

export type SessionPlace = z.output<typeof sessionPlaceSchema>

export type SessionDetails = z.output<typeof sessionDetailsSchema>

/** The user of a session, as the provider names it. */
export interface SessionOwner {
  readonly issuer: string
  readonly providerSubject: string
}

export interface NewSession extends SessionOwner {
  readonly id: string
  readonly referenceHash: string
  readonly record: ReferenceRecord
  readonly details: SessionDetails
  readonly place: SessionPlace
  /** The tokens of the provider, encrypted. */
  readonly tokens: string | undefined
  readonly endsAtSeconds: number
}

export interface ListedSession extends SessionDetails, SessionPlace {
  readonly id: string
  /** When the next renewal is due: an eighth of the idle time after the last one. */
  readonly renewAtSeconds: number
}

export interface SessionRenewal {
  readonly id: string
  /** Of the reference. Undefined: that of `PUBLIC_URL`. */
  readonly host: string | undefined
  readonly referenceHash: string
  readonly successorHash: string
  readonly nonce: string
  readonly succeed: (record: ReferenceRecord) => ReferenceRecord
  /** How long the old reference stays valid. */
  readonly graceSeconds: number
}

/** A login in progress. It contains no secret: those are derived from the browser's cookie. */
export const loginSchema = z.strictObject({
  issuer: z.string(),
  /** See `storedReturn`. */
  returnPath: z.string(),
  /** The hash of the cookie of the browser that began the login. */
  browserHash: z.string(),
  maxAgeSeconds: z.optional(integer()),
  acr: z.optional(z.array(z.string())),
  /** Where the response arrives. Absent: at the callback of all providers. */
  callbackPath: z.optional(z.string()),
  /** The login has been completed: a second load of the callback goes on to its page. */
  used: z.optional(z.literal(true)),
})

export type LoginInProgress = z.output<typeof loginSchema>

/** A login that another host may take over, with a code. */
export const handOverSchema = z.strictObject({
  /** The only host that may. */
  host: z.string(),
  /** Binds the code to the browser. */
  state: z.string(),
  sessionId: z.string(),
  issuer: z.string(),
  providerSubject: z.string(),
  returnPath: z.string(),
})

export type HandOver = z.output<typeof handOverSchema>

/** The reference of a session at another host than that of `PUBLIC_URL`. */
export interface HostReference {
  readonly id: string
  readonly host: string
  readonly referenceHash: string
  /** Returns its record, from that of the session's reference at `PUBLIC_URL`. Undefined: there is none. */
  readonly derive: (record: ReferenceRecord) => ReferenceRecord | undefined
}

/** Port. Throws `Unavailable` if the store does not respond. */
export interface SessionStore {
  /** As of `ReferenceStore`, for the ids of sessions too. Of two hashes, those of a session are a `subject` as well. */
  draw?(subject: string, create: (attempt: number) => string): string
  /** Returns the subject of a session, whose lane alone must have its end. Default: every lane gets it. */
  subjectOf?(id: string): Promise<string | undefined>
  beginLogin(stateHash: string, login: LoginInProgress, lifeSeconds: number): Promise<void>
  /** Returns a login and removes it: its `state` is valid once. */
  takeLogin(stateHash: string): Promise<LoginInProgress | undefined>
  keepHandOver(codeHash: string, handOver: HandOver, lifeSeconds: number): Promise<void>
  /** Returns a hand-over and removes it: a code is valid once. */
  takeHandOver(codeHash: string): Promise<HandOver | undefined>
  /** Adds the reference of a host to a session. Undefined: the session has ended. */
  addHost(reference: HostReference): Promise<ReferenceRecord | undefined>
  /**
   * Stores a session. Returns the ids of other sessions of its user, those above `max`; and its own if a logout by the
   * provider may have missed it.
   */
  open(session: NewSession, max: number): Promise<readonly string[]>
  /**
   * Replaces the reference of a session. Returns the nonce of its successor: that of a concurrent
   * renewal if it was earlier. Undefined: the session has ended, has a later reference, or its rights
   * are being changed.
   */
  renew(renewal: SessionRenewal): Promise<string | undefined>
  /** Returns the ids of a user's sessions, also of those that are being opened, and of some that have ended. */
  ids(owner: SessionOwner): Promise<readonly string[]>
  /** Returns the sessions of a user that have not ended. */
  list(owner: SessionOwner): Promise<readonly ListedSession[]>
  /** Returns the encrypted tokens of a session. */
  findTokens(id: string): Promise<string | undefined>
  /**
   * Reserves the refresh of a session's tokens for `seconds`. Undefined: another request has reserved
   * it. Otherwise, returns the encrypted tokens; an empty text if there are none.
   */
  reserveRefresh(id: string, seconds: number): Promise<string | undefined>
  /** Stores refreshed tokens, which need no refresh for `seconds`. A session that has ended stays so. */
  keepTokens(id: string, tokens: string, seconds: number): Promise<void>
  /** Changes the records of a session's present references: one for each host. */
  changeRecord(id: string, change: (record: ReferenceRecord) => ReferenceRecord): Promise<void>
  /** Reports whether a logout token was used before. */
  isLogoutTokenUsed(hash: string): Promise<boolean>
  /** Records the use of a logout token. Returns false if it was used before. */
  useLogoutToken(hash: string, seconds: number): Promise<boolean>
  /** Removes a session and its references at all hosts, which must have been revoked before. */
  remove(id: string, owner: SessionOwner): Promise<void>
}
