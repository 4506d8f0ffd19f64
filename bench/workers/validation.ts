/** Validating alone: `authenticate`, and an answer that says who was found. No Redis, no origin. */
import { Hono } from 'hono'
import {
  authenticate,
  callerOf,
  createTokenVerifier,
  type GatewayEnv,
  type PrincipalVariables,
  parseConfig,
  problemHandler,
} from '../../src/index.ts'

/** Builds the app of an isolate. */
export function createValidation(env: GatewayEnv) {
  const { issuers, publicUrl } = parseConfig(env)
  const verifier = createTokenVerifier({ issuers })
  const app = new Hono<{ Variables: PrincipalVariables }>()
  app.onError(problemHandler({ publicUrl }))
  app.get('/validation', authenticate({ verifier }), (c) => c.text(callerOf(c)?.subject ?? ''))
  return app.fetch
}
