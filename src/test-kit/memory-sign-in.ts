/** The stages of routes with browser sessions, without pages, providers and stored sessions. */
import type { Contribution } from '../gateway/feature.ts'
import { browserSession } from '../middleware/browser-session.ts'
import type { Policy } from '../policy/policy.ts'
import { SESSION_COOKIE } from '../sign-in/session.ts'

interface MemorySignInOptions {
  readonly policy: Pick<Policy, 'routes'>
  readonly publicUrl: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Adds nothing if no route accepts sessions. */
export function memorySignIn({
  policy: { routes },
  publicUrl,
  now,
}: MemorySignInOptions): Contribution {
  if (routes.every(({ session }) => session === undefined)) return {}
  const sessions = { renew: async () => undefined }
  return {
    stagesOf: ({ session: demand }, { references }) =>
      demand &&
      browserSession({
        references,
        renewal: { sessions, refresh: async () => {} },
        publicUrl,
        demand,
        now,
      }),
    cookies: [SESSION_COOKIE],
  }
}
