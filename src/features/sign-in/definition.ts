/** The sign-in as a user configures it, and its defaults. */
import type { Branding, PageTheme } from './rendering/page-theme.ts'

export interface SignInDefinition {
  /** A session ends after this time without a request. Default 1,800; at least 60. */
  readonly idleSeconds?: number
  /** A session ends this time after its login. Default 43,200 (12 hours). */
  readonly absoluteSeconds?: number
  /** Sessions of one user. The oldest end when there are more. Default 10. */
  readonly maxSessions?: number
  /** Roles of every signed-in user, in addition to those in the ID token. Default none. */
  readonly roles?: readonly string[]
  /** Requests of one address to the sign-in in a minute. Default 120. */
  readonly requestsPerMinute?: number
  /** Colors and fonts of the pages, as CSS values. */
  readonly theme?: PageTheme
  /** Name, picture and links of the service on the pages. Default none. */
  readonly branding?: Branding
}

export const DEFAULT_REQUESTS_PER_MINUTE = 120
/** Logouts that one address of a provider may send. Each costs a signature. */
export const PROVIDER_REQUESTS_PER_MINUTE = 6_000
