/** The complete gateway as a Worker. */

import type { SignInDefinition } from '../../../src/features/sign-in/definition.ts'
import { composeServices, createGateway, type GatewayEnv } from '../../../src/index.ts'
import { policyFor } from './policy.ts'

type Env = GatewayEnv & { readonly SIGN_IN: string; readonly POLICY?: string }

let app: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: Env, context: ExecutionContext) {
    if (app === undefined) {
      const policy = policyFor(
        JSON.parse(env.SIGN_IN) as SignInDefinition,
        JSON.parse(env.POLICY ?? '{}') as Parameters<typeof policyFor>[1],
      )
      app = createGateway({ ...composeServices(env, policy), auditSink: { record() {} } }, policy)
    }
    return app.fetch(request, env, context)
  },
}
