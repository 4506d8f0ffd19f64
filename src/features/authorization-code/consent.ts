/** What a user has allowed a client to do, and the port of the store. */
import * as z from 'zod/mini'
import { integer } from '../../validators/schema-parts.ts'
import {
  classifyRedirect,
  withoutLoopbackPort,
} from '../authorization-server/schemas/redirect-uri.ts'

const names = z.readonly(z.array(z.string()))

export const consentSchema = z.strictObject({
  /** `client_id`. */
  client: z.string(),
  /** The name that the user saw. */
  name: z.string(),
  /** Without the port of a loopback redirect. */
  redirectUri: z.string(),
  scopes: names,
  audiences: names,
  /** The last time that the user allowed it, in seconds since the epoch. */
  allowedAtSeconds: integer(),
})

export type Consent = Readonly<z.output<typeof consentSchema>>

/** The issuer that vouches for the user, the subject there, and the tenant of the user if it has one. */
export interface User {
  readonly issuer: string
  readonly subject: string
  readonly tenant?: string | undefined
}

/**
 * Returns the users under which the consents of a user are stored: the user itself, and the user
 * without its tenant. Earlier versions stored all consents without a tenant, and these stay valid.
 */
export const holdersOf = (user: User): readonly User[] =>
  user.tenant === undefined ? [user] : [user, { issuer: user.issuer, subject: user.subject }]

/** A session of the client, which ends with the consent. */
export interface ConsentedSession {
  readonly id: string
  readonly expiresAtSeconds: number
}

/** Port: the consents of users. Throws `Unavailable` if the store cannot read or write. */
export interface Consents {
  find(user: User, client: string): Promise<Consent | undefined>
  list(user: User): Promise<readonly Consent[]>
  /**
   * Replaces the consent of the user for this client, adds a session, and forgets sessions that have
   * ended. Returns false, without a change, if a consent is required and there is none.
   */
  allow(user: User, consent: Consent, change: ConsentChange): Promise<boolean>
  /** Returns the sessions of a client, the first to end first. */
  sessions(user: User, client: string): Promise<readonly ConsentedSession[]>
  /**
   * Forgets sessions that have ended, and the consent. Returns `other_sessions`, and keeps the consent,
   * if the client has other sessions.
   */
  forget(
    user: User,
    client: string,
    ended: readonly ConsentedSession[],
  ): Promise<'forgotten' | 'unknown' | 'other_sessions'>
}

export interface ConsentChange {
  readonly session: ConsentedSession
  readonly ended: readonly ConsentedSession[]
  /** Whether the user must have allowed the client before. */
  readonly isRepeated: boolean
}

/** What a client requests, as the consent page shows it. */
export interface Requested {
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly audiences: readonly string[]
}

/**
 * Reports whether an earlier consent covers a request, so that no page is necessary. A redirect that
 * any program of the device could receive never is: nothing proves which client sent the request (RFC
 * 8252 section 8.6). A client that changes its redirect URI needs a new consent.
 */
export function isCovered(consent: Consent | undefined, requested: Requested): boolean {
  if (consent === undefined || classifyRedirect(requested.redirectUri) !== 'https') return false
  return (
    consent.redirectUri === withoutLoopbackPort(requested.redirectUri) &&
    requested.scopes.every((name) => consent.scopes.includes(name)) &&
    (isWhole(consent) || (!isWhole(requested) && isPartOf(requested, consent)))
  )
}

type Audiences = Pick<Requested, 'audiences'>

/** Only the gateway itself: all of its paths. Other lists name paths as well, and are narrower. */
const isWhole = ({ audiences }: Audiences): boolean => audiences.length === 1

const isPartOf = (part: Audiences, whole: Audiences): boolean =>
  part.audiences.every((name) => whole.audiences.includes(name))
