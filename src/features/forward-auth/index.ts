/** Decisions for other proxies: `import { forwardAuth } from 'portcullis/forward-auth'`. */
import type { Feature } from '../../gateway/feature.ts'
import { nameOfRoute, type PolicyRoute } from '../../policy/route.ts'
import { mistakeAt } from '../../problems/mistake.ts'
import { withSuggestion } from '../../suggestions/did-you-mean.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { readVariables } from '../../validators/environment.ts'
import { BODY_ELSEWHERE, createDecisions, needsBody } from './decisions.ts'
import {
  DEFAULT_HOST,
  DEFAULT_PORT,
  forwardAuthSchema,
  forwardAuthVariables,
  PROXIES,
  type ProxyName,
} from './schema.ts'

export type { ProxyName }

export interface ForwardAuthDefinition {
  /**
   * The proxy in front. It decides which headers describe the request: a client may have sent the others.
   * Default: it follows from the authorization request, and headers of two proxies must agree.
   */
  readonly proxy?: ProxyName
  /**
   * Routes, such as `POST /orders`, that are decided although their body is not here. The response says
   * so in `X-Portcullis-Undecided: body`. Default: a route whose input schema, inspection or MCP server reads
   * the body is refused (403).
   */
  readonly withoutBody?: readonly string[]
}

/**
 * Returns the decision endpoint `/-/decide`, for the policy's `features`. The pipeline runs for the
 * request that a trusted proxy describes, and the proxy sends it to the origin, or not. The endpoint has a
 * listener of its own (`FORWARD_AUTH_PORT`, `FORWARD_AUTH_HOST`), which answers only `TRUSTED_PROXIES` and
 * never proxies. Needs the server on Node.
 *
 * Does NOT see bodies: sizes of bodies are limited by the proxy. Throws `Misconfigured` for a wrong
 * definition.
 *
 * @example
 * ```ts
 * features: [forwardAuth({ proxy: 'traefik' })]
 * ```
 */
export function forwardAuth(definition: ForwardAuthDefinition = {}): Feature {
  const { proxy, withoutBody = [] } = parseConfiguration(
    'The policy',
    forwardAuthSchema,
    definition,
    ['features', 'forwardAuth'],
  )
  const form = proxy === undefined ? undefined : PROXIES[proxy]
  return {
    name: 'forwardAuth',
    presence: 'more',
    settings: { proxy, withoutBody },
    effects: { withoutBody: 'more' },
    variables: forwardAuthVariables,
    problems: { [BODY_ELSEWHERE.code]: BODY_ELSEWHERE },
    remarkOn(route) {
      const row = route as PolicyRoute
      if (!needsBody(row)) return undefined
      return withoutBody.includes(nameOfRoute(row))
        ? 'for another proxy, inspect and validate do not see the body: the answer says X-Portcullis-Undecided: body'
        : 'another proxy gets 403 body_elsewhere, because inspect or validate needs the body'
    },
    conflictsIn: (_, routes) => mistakesInNames(withoutBody, routes as readonly NamedRoute[]),
    create({ policy: { routes, identityHeaders }, config, addressOf, publicUrl }) {
      const { FORWARD_AUTH_HOST: host = DEFAULT_HOST, FORWARD_AUTH_PORT: port = DEFAULT_PORT } =
        readVariables(config, forwardAuthVariables)
      return {
        listener: {
          name: 'forward-auth',
          host,
          port,
          open: ({ createGateway }) =>
            createDecisions({
              createGateway,
              routes,
              identityHeaders,
              form,
              withoutBody: new Set(withoutBody),
              addressOf,
              publicUrl,
            }),
        },
      }
    },
  }
}

type NamedRoute = Parameters<typeof nameOfRoute>[0]

/** Yields a mistake for each name that no route has. */
function* mistakesInNames(names: readonly string[], routes: readonly NamedRoute[]) {
  const known = routes.map(nameOfRoute)
  for (const [index, given] of names.entries()) {
    if (known.includes(given)) continue
    const message = withSuggestion(
      'is not the name of a route, such as "POST /orders"',
      given,
      known,
    )
    const path = ['features', 'forwardAuth', 'withoutBody', index]
    yield { ...mistakeAt('unknown_route', path, message), given, known }
  }
}
