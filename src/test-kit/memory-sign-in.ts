/** The stages of routes with browser sessions, without pages, providers and stored sessions. */
import type { SignInServices } from '../gateway/features.ts'
import { createApp } from '../http/router.ts'
import { browserSession } from '../middleware/browser-session.ts'
import type { GatewayVariables } from '../middleware/context.ts'
import type { Policy } from '../policy/policy.ts'
import { SESSION_COOKIE } from '../sign-in/session.ts'
import type { References } from '../tokens/references.ts'

interface MemorySignInOptions {
  readonly policy: Pick<Policy, 'routes'>
  readonly references: References
  readonly publicUrl: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Returns undefined if no route accepts sessions. */
export function memorySignIn({
  policy: { routes },
  references,
  publicUrl,
  now,
}: MemorySignInOptions): SignInServices | undefined {
  if (routes.every(({ session }) => session === undefined)) return undefined
  const sessions = { renew: async () => undefined }
  return {
    routes: createApp<{ Variables: GatewayVariables }>(),
    operations: () => [],
    stagesOf: ({ session: demand }) =>
      demand &&
      browserSession({
        references,
        renewal: { sessions, refresh: async () => {} },
        publicUrl,
        demand,
        now,
      }),
    cookies: [SESSION_COOKIE],
    ownCookies: [],
  }
}
