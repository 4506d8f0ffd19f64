/** Validating alone: `authenticate`, and an answer that says who was found. No Redis, no origin. */
import { Hono } from 'hono'
import {
  authenticate,
  callerOf,
  createTokenVerifier,
  type GatewayEnv,
  type Principal,
  type PrincipalVariables,
  parseConfig,
  problemHandler,
} from '../../src/index.ts'
import { COLD_VALIDATION_PATH, VALIDATION_PATH, validationAnswer } from '../tokens/operations.ts'

/** A run may last longer than a token is remembered: the clock goes slower by so much. */
const SLOWED = 1_000

/** Builds the app of an isolate. A token that is remembered gives the same object again. */
export function createValidation(env: GatewayEnv) {
  const { issuers, publicUrl } = parseConfig(env)
  const begunMs = Date.now()
  const now = () => begunMs + (Date.now() - begunMs) / SLOWED
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
      const remembered = seen.has(principal)
      if (!remembered) seen.add(principal)
      return c.text(validationAnswer(principal.subject, remembered))
    })
  }
  return app.fetch
}
