/** `authenticate` and an answer that says who was found: no Redis, no origin, and a count. */
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
import { newTally } from '../../src/isolate/tally.ts'
import { TALLY_PATH, WHO_PATH } from '../requests/variants.ts'
import { validationAnswer } from '../token-costs/validation-answer.ts'

/** The count is the one that the gateway's metrics are made of; a remembered token gives the same
 *  object again. */
export function createTalliedValidation(env: GatewayEnv) {
  const { issuers, publicUrl } = parseConfig(env)
  const tally = newTally()
  const verifier = createTokenVerifier({ issuers, tally })
  const seen = new WeakSet<Principal>()
  const app = new Hono<{ Variables: PrincipalVariables }>().basePath('/validation')
  app.onError(problemHandler({ publicUrl }))
  app.get(TALLY_PATH, (c) => c.json(tally))
  app.get(WHO_PATH, authenticate({ verifier }), (c) => {
    const principal = callerOf(c)
    if (principal === null) return c.text('')
    const remembered = seen.has(principal)
    if (!remembered) seen.add(principal)
    return c.text(validationAnswer(principal.subject, remembered))
  })
  return app.fetch
}
