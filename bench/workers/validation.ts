/** Validation alone: `authenticate`, and a response with the subject. No Redis, no origin. */
import { Hono } from 'hono'
import type { GatewayEnv, Principal } from '../../src/index.ts'
import {
  authenticate,
  callerOf,
  createTokenVerifier,
  type PrincipalVariables,
  parseConfig,
  problemHandler,
} from '../../src/parts.ts'
import { COLD_VALIDATION_PATH, VALIDATION_PATH, validationAnswer } from '../tokens/operations.ts'

/** A run may be longer than the life of a cache entry, so the clock is slower by this factor. */
const SLOWED = 1_000

/** Creates the app of an isolate. For a cached token, the verifier returns the same object again. */
export function createValidation(env: GatewayEnv) {
  const { issuers, publicUrl } = parseConfig(env)
  const startMs = Date.now()
  const now = () => startMs + (Date.now() - startMs) / SLOWED
  const seen = new WeakSet<Principal>()
  const app = new Hono<{ Variables: PrincipalVariables }>()
  app.onError(problemHandler({ publicUrl }))
  for (const [path, options] of [
    [VALIDATION_PATH, {}],
    [COLD_VALIDATION_PATH, { maxCachedBytes: 0 }],
  ] as const) {
    const verifier = createTokenVerifier({ issuers, now, ...options })
    app.get(path, authenticate({ verifier }), (c) => {
      const principal = callerOf(c)
      if (principal === null) return c.text('')
      const isCached = seen.has(principal)
      if (!isCached) seen.add(principal)
      return c.text(validationAnswer(principal.subject, isCached))
    })
  }
  return app.fetch
}
