/** How long sessions last, and how many a user has, unless the policy says otherwise. */
import type { SessionTerms } from './sessions.ts'

export const DEFAULT_TERMS: SessionTerms = {
  idleSeconds: 1_800,
  absoluteSeconds: 43_200,
  maxSessions: 10,
  roles: [],
}
