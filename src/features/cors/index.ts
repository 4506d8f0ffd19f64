/** Pages of other origins: `import { cors } from 'portcullis/cors'`. */

import type { Contribution, Feature, GuardParts } from '../../gateway/feature.ts'
import { admit } from '../../middleware/admit.ts'
import { banOffenders } from '../../middleware/ban-offenders.ts'
import { inOrder, stage } from '../../middleware/in-order.ts'
import { problemHandler } from '../../middleware/problem-handler.ts'
import type { CorsDefinition, CorsFeature } from '../../policy/cors.ts'
import type { PolicyRoute } from '../../policy/policy.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { cors as corsHeaders } from './headers.ts'
import { preflight } from './preflight.ts'
import { compileCorsRules } from './rules.ts'
import { corsSchema } from './schema.ts'

export type { CorsDefinition, CorsFeature }

/**
 * Lets pages of other origins read the responses of a route, for its field `cors`. Throws
 * `Misconfigured` for origins that no page has, and for credentials with a pattern.
 *
 * @example
 * ```ts
 * const app = cors({ origins: ['https://app.example.com'] })
 * const route = { method: 'GET', path: '/orders', permission: 'orders:read', cors: app } as const
 * ```
 */
export function cors(definition: CorsDefinition): CorsFeature {
  parseConfiguration('The policy', corsSchema, definition, ['cors'])
  return { feature: 'cors', by: CORS, limits: definition.limits, definition }
}

/** One for all rules of a policy. */
const CORS: Feature = { name: 'cors', guard }

function guard({
  core,
  policy: { routes, limits: limitOf, problemBaseUrl },
}: GuardParts): Contribution {
  const { sources, publicUrl, now } = core
  const tokenHeaders = sources?.headers ?? []
  const onError = problemHandler({ publicUrl, problemBaseUrl, now })
  const compiled = new Map(
    [...new Set(routes.flatMap((route) => definitionOf(route) ?? []))].map((definition) => [
      definition,
      compileCorsRules(definition, tokenHeaders),
    ]),
  )
  const rulesOf = (route: PolicyRoute) => {
    const definition = definitionOf(route)
    return definition && compiled.get(definition)
  }
  const rules = new Map(
    routes.flatMap((route) => {
      const found = rulesOf(route)
      return found === undefined ? [] : [[route, found] as const]
    }),
  )
  return {
    around: [corsHeaders({ rules })],
    preflightOf(route, { admission, violations }) {
      const limits = route.cors?.limits?.flatMap((name) => limitOf.get(name) ?? []) ?? route.limits
      const guards = [
        ...(violations === undefined ? [] : [banOffenders({ violations, limits })]),
        stage('admit', admit({ admission, limits, now })),
      ]
      return preflight({ route, rules: rules.get(route), guards: inOrder(guards, onError) })
    },
  }
}

const definitionOf = ({ cors }: PolicyRoute): CorsDefinition | undefined => cors?.definition
