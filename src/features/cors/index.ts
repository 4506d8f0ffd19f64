/** Pages of other origins: `import { cors } from 'portcullis/cors'`. */

import type { MiddlewareHandler } from 'hono'
import * as z from 'zod/mini'
import type { Contribution, Feature, GuardParts } from '../../gateway/feature.ts'
import { coversHost, hostOf } from '../../http/host.ts'
import { writeHeaders } from '../../http/response-headers.ts'
import { fieldsOf, varyBy } from '../../http/shared-caches.ts'
import { admit } from '../../middleware/admit.ts'
import { banOffenders } from '../../middleware/ban-offenders.ts'
import type { PrincipalVariables, RouteVariables } from '../../middleware/context.ts'
import { createMiddleware } from '../../middleware/create-middleware.ts'
import { inOrder, stage } from '../../middleware/in-order.ts'
import { problemHandler } from '../../middleware/problem-handler.ts'
import { receivedHeaders } from '../../middleware/request-headers.ts'
import type { CorsDefinition, CorsFeature } from '../../policy/cors.ts'
import type { PolicyRoute } from '../../policy/policy.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { wholeNumber } from '../../validators/schema-parts.ts'
import { webOrigin } from '../../validators/variables.ts'
import { type CorsRules, compileCorsRules } from './rules.ts'

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

const WILDCARD = /^(https?:\/\/)\*\./

/** An origin, or one with `*` in place of the first label of its host. */
const originPattern = z
  .string()
  .check(
    z.refine(
      (value) => webOrigin.safeParse(value.replace(WILDCARD, '$1a.')).success && isOwned(value),
      'must be an origin such as https://app.example.com or https://*.example.com',
    ),
  )

/** `https://*.com` would allow the pages of anyone. */
const isOwned = (value: string): boolean =>
  !WILDCARD.test(value) || new URL(value.replace(WILDCARD, '$1')).hostname.includes('.')

/** RFC 9110 section 5.1. In CORS, `*` stands for all names. */
const headerName = z
  .string()
  .check(z.regex(/^[!#$%&'+.^_`|~\w-]+$/, 'must be the name of a header; "*" is not supported'))

const corsSchema = z
  .strictObject({
    origins: z.union([z.literal('*'), z.array(originPattern).check(z.minLength(1))]),
    credentials: z.optional(z.boolean()),
    allowHeaders: z.optional(z.array(headerName)),
    exposeHeaders: z.optional(z.array(headerName)),
    maxAgeSeconds: z.optional(wholeNumber(0, 86_400)),
    privateNetwork: z.optional(z.boolean()),
    limits: z.optional(z.array(z.string())),
  })
  .check(
    z.refine(({ origins, credentials }) => !credentials || !isPattern(origins), {
      error: 'credentials requires exact origins, without "*"',
    }),
  )

const isPattern = (origins: string | readonly string[]): boolean =>
  typeof origins === 'string' || origins.some((origin) => origin.includes('*'))

interface CorsOptions {
  /** Routes without rules: no page of another origin may read their responses. */
  readonly rules: ReadonlyMap<RouteVariables['portcullis.route'], CorsRules>
}

const SWITCHING_PROTOCOLS = 101

/**
 * Adds the CORS headers of the matched route to its response, errors included. An error without a
 * matched route, such as 404, gets those of the first rules for its host that allow the page: it contains
 * nothing about a caller. Comes before every stage that may refuse.
 *
 * Does NOT refuse requests of other pages. CORS decides only which responses a page may read.
 */
const corsHeaders = ({ rules }: CorsOptions) => {
  /** Returns the first rules for the host of a request that allow the page. */
  function rulesFor(url: string, origin: string | undefined): CorsRules | undefined {
    const host = hostOf(url)
    for (const [route, each] of rules)
      if (coversHost(route.host, host) && each.allows(origin)) return each
    return undefined
  }

  return createMiddleware<{ Variables: Partial<RouteVariables> }>(
    async function corsHeaders(c, next) {
      await next()
      if (c.res.status === SWITCHING_PROTOCOLS) return
      const origin = receivedHeaders(c).get('origin')
      const route = c.get('portcullis.route')
      const found = route === undefined ? c.error && rulesFor(c.req.url, origin) : rules.get(route)
      if (found === undefined) return
      writeHeaders(c, (headers) => {
        for (const [name, value] of found.ofResponse(origin)) headers.set(name, value)
        if (found.varyByOrigin) varyBy(fieldsOf(headers), ['Origin'])
      })
    },
  )
}

interface PreflightOptions {
  readonly route: PolicyRoute
  /** Undefined: preflight requests for the route continue with the next handler. */
  readonly rules: CorsRules | undefined
  /** Guards of a preflight request, such as `admit`. */
  readonly guards: MiddlewareHandler
}

/**
 * Answers preflight requests for one route with 204, without calling the origin. The caller is
 * anonymous, because browsers send no credentials. Other requests, and those for a route that an
 * earlier handler has matched, continue with the next handler. A page that may not read responses
 * gets 204 without CORS headers; `cors` adds the origin for the others.
 *
 * Must be registered for OPTIONS in the order of the routes, after `clientAddress`.
 */
const preflight = ({ route, rules, guards }: PreflightOptions) =>
  createMiddleware<{ Variables: Partial<RouteVariables> & PrincipalVariables }>(
    async function preflight(c, next) {
      const received = receivedHeaders(c)
      const isMatched = c.get('portcullis.route') !== undefined
      if (isMatched || !isPreflightFor(route, received)) return next()
      c.set('portcullis.route', route)
      c.set('portcullis.principal', null)
      if (rules === undefined) return next()
      await guards(c, async () => {
        const headers = new Headers()
        const isPrivateNetwork = received.get('access-control-request-private-network') === 'true'
        const method = received.get('access-control-request-method') ?? route.method
        if (rules.allows(received.get('origin')))
          for (const [name, value] of rules.ofPreflight(method, isPrivateNetwork))
            headers.set(name, value)
        c.res = new Response(null, { status: 204, headers })
      })
    },
  )

/** Whether a page intends to send a request of this route. HEAD is treated as GET. */
function isPreflightFor({ method }: PolicyRoute, received: ReadonlyMap<string, string>): boolean {
  const intended = received.get('access-control-request-method')
  if (intended === undefined || !received.has('origin')) return false
  return intended === method || (intended === 'HEAD' && method === 'GET')
}
