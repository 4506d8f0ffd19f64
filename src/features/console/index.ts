/** The console for operators: `import { console } from 'portcullis/console'`. */

import * as z from 'zod/mini'
import type { Feature } from '../../gateway/feature.ts'
import type { AuthenticationDemand } from '../../policy/definition.ts'
import { authenticationSchema } from '../../validators/authentication.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { DEMAND_EFFECTS } from '../operators/people.ts'
import { CALLER_PERMISSION, consoleCalls, POLICY_PERMISSION } from './calls.ts'
import { issuerCalls } from './issuers.ts'
import { keyLimitCalls } from './key-limits.ts'
import { MCP_APPROVE, MCP_READ, mcpCalls } from './mcp-calls.ts'
import { createPolicyHistory } from './policy-history.ts'
import { CONSOLE_PERMISSION, consoleRoutes } from './routes.ts'
import { consoleVariables } from './schema.ts'
import { statusCalls } from './status.ts'
import { strayNavigations } from './stray-navigations.ts'

export interface ConsoleOptions {
  /**
   * What the login of a person must be to change something, in addition to the permission: of a kind (`acr`), or at
   * most `maxAgeSeconds` old. Default: any login.
   */
  readonly authentication?: AuthenticationDemand
}

const optionsSchema = z.strictObject({ authentication: z.optional(authenticationSchema) })

/**
 * Returns the console for the policy's `features`: pages below `/-/console` for people who sign in, with the role of
 * an operator. Needs `operators()` and `signIn()`. Each action is an operators' call, with its permission, and has a
 * reason in the audit trail. The operators' API itself does not accept sessions because of it.
 *
 * @example
 * ```ts
 * features: [operators(), authorizationServer(), signIn(), console()],
 * roles: { admin: ['portcullis:*'] },
 * ```
 */
export function console(options: ConsoleOptions = {}): Feature {
  const { authentication } = parseConfiguration('The policy', optionsSchema, options, ['console()'])
  return {
    name: 'console',
    presence: 'more',
    settings: { authentication },
    effects: DEMAND_EFFECTS,
    requires: ['operators', 'signIn'],
    variables: consoleVariables,
    permissions: [CONSOLE_PERMISSION, POLICY_PERMISSION, CALLER_PERMISSION, MCP_READ, MCP_APPROVE],
    create(parts) {
      const history = createPolicyHistory(parts)
      const groups = [consoleCalls, keyLimitCalls, issuerCalls, mcpCalls, statusCalls]
      return {
        tasks: [history.task],
        around: [strayNavigations(new URL(parts.publicUrl).origin)],
        operatorCalls: [history.calls, ...groups.map((calls) => calls(parts))],
        calls: () => consoleRoutes(parts, authentication),
      }
    },
  }
}
