/** Rules about policies that are valid, but probably not what was meant. */

import { createAuthorizer, permissionSet } from '../../src/access/permissions.ts'
import type { Principal } from '../../src/access/principal.ts'
import { withoutIssuer } from '../../src/features/origins/audiences.ts'
import { coversHost } from '../../src/http/host.ts'
import { shadows } from '../../src/http/path-pattern.ts'
import { findLookAlikes } from '../../src/policy/look-alikes.ts'
import type { Policy, PolicyRoute } from '../../src/policy/policy.ts'
import { nameOfRoute, OPERATORS_LIMIT } from '../../src/policy/route.ts'
import { permissionsOfRoute } from '../../src/policy/route-permissions.ts'
import { didYouMean } from '../../src/suggestions/did-you-mean.ts'
import type { RunTimes } from '../patterns/run-time.ts'
import { callsOf } from './calls.ts'
import { scopesOfClients } from './client-scopes.ts'
import type { Finding, Severity } from './finding.ts'
import { sendersOfAuthTime } from './login-ages.ts'
import { unknownMappedRoles } from './mapped-roles.ts'
import { admits, roleCaller, routesOfFeatures } from './matrix.ts'
import { nearestPermission } from './nearest-permission.ts'
import { patternsOf } from './route-patterns.ts'

interface Rule {
  readonly severity: Exclude<Severity, 'error'>
  /** One sentence for reports: why this is reported. */
  readonly reason: string
  /** `variables` are those of the shell. */
  find(
    policy: Policy,
    variables: NodeJS.ProcessEnv,
    runTimes: RunTimes | undefined,
  ): Iterable<Omit<Finding, 'rule' | 'severity'>>
}

const isWrite = ({ method }: PolicyRoute) => method !== 'GET'
const mayHaveBody = ({ method, maxBodyBytes }: PolicyRoute) =>
  ['POST', 'PUT', 'PATCH'].includes(method) && maxBodyBytes > 0
const OF_OPERATORS = 'portcullis:'

/** The rules by name. A name never changes its meaning. docs/policy-tools.md lists them. */
export const RULES = {
  'unlimited-route': {
    severity: 'warning',
    reason: 'A route without a limit lets one caller use the whole capacity of the origin.',
    *find({ routes }) {
      for (const [index, route] of routes.entries())
        if (route.limits.length === 0)
          yield {
            path: ['routes', index],
            message: `${nameOfRoute(route)}: has no limit`,
            suggestion: "add limits: ['…'] with the name of a limit",
          }
    },
  },
  'unchecked-streams': {
    severity: 'warning',
    reason:
      'An open response or WebSocket survives a revocation and a ban until the token expires.',
    *find({ routes }) {
      for (const [index, route] of routes.entries())
        if (route.recheckSeconds === 0 && route.permission !== undefined)
          yield {
            path: ['routes', index, 'recheckSeconds'],
            message: `${nameOfRoute(route)}: recheckSeconds is 0, so open streams are never checked again`,
            suggestion: 'remove recheckSeconds, or set it to a number of seconds',
          }
    },
  },
  'unbound-tokens': {
    severity: 'warning',
    reason:
      'The profile binds the tokens of the gateway; a route without dpop also accepts unbound ones of other issuers.',
    *find({ routes, features }, { ISSUERS }) {
      if (!bindsTokens(features) || ISSUERS?.trim() === '[]') return
      for (const [index, route] of routes.entries())
        if (route.permission !== undefined && !route.dpop && route.session === undefined)
          yield {
            path: ['routes', index],
            message: `${nameOfRoute(route)}: accepts tokens of other issuers without a proof`,
            suggestion: 'add dpop: true, unless clients of another issuer need the route',
          }
    },
  },
  'unused-limit': {
    severity: 'warning',
    reason: 'A limit that no route names limits nothing.',
    *find(policy) {
      const { limits, routes, features } = policy
      const used = new Set(
        [...routes, ...routesOfFeatures(policy)].flatMap(({ limits, cors, mcp }) => [
          ...limits.map(({ name }) => name),
          ...(cors?.limits ?? []),
          ...(mcp?.limits ?? []),
        ]),
      )
      if (features.some(({ name }) => name === 'operators')) used.add(OPERATORS_LIMIT)
      for (const name of limits.keys())
        if (!used.has(name))
          yield {
            path: ['limits', name],
            message: `limits.${name}: no route uses it`,
            suggestion: 'add it to a route, or remove it',
          }
    },
  },
  'ungranted-permission': {
    severity: 'warning',
    reason: 'No role grants the permission, so only a scope of a token without roles can.',
    *find({ routes, roles }, { CLIENTS }) {
      const authorize = createAuthorizer(roles)
      const ofClients = permissionSet(scopesOfClients(CLIENTS))
      const everybody = roleCaller([...roles.keys()])
      const granted = [...roles.values()].flat().filter((pattern) => !pattern.includes('*'))
      for (const [index, route] of routes.entries())
        for (const { permission, of, field } of demandsOf(route))
          if (!authorize(everybody, permission) && !ofClients.covers(permission))
            yield {
              path: ['routes', index, field],
              message: `${of}: no role grants ${permission}`,
              suggestion:
                nearestPermission(permission, granted) ??
                `add '${permission}' to a role, unless scopes grant it`,
            }
    },
  },
  'unused-role': {
    severity: 'warning',
    reason: 'The role opens no route, so its callers are refused everywhere.',
    *find(policy) {
      const { routes, roles } = policy
      const authorize = createAuthorizer(roles)
      const required = new Set([...routes, ...routesOfFeatures(policy)].flatMap(permissionsOfRoute))
      for (const [role, patterns] of roles) {
        // The calls of operators are not in the route table.
        if (patterns.some((pattern) => pattern === '*' || pattern.startsWith(OF_OPERATORS)))
          continue
        const caller = roleCaller([role])
        if (![...required].some((permission) => authorize(caller, permission)))
          yield {
            path: ['roles', role],
            message: `roles.${role}: no route requires a permission of this role`,
            suggestion:
              patterns.map((pattern) => didYouMean(pattern, [...required])).find(Boolean) ??
              'correct its permissions, or remove the role',
          }
      }
    },
  },
  'wildcard-over-stricter-route': {
    severity: 'warning',
    reason: 'A path that differs a little from the stricter route gets the wildcard instead.',
    *find(policy) {
      for (const [index, wildcard] of policy.routes.entries()) {
        if (!wildcard.path.endsWith('*')) continue
        const stricter = policy.routes.find(
          (route) =>
            route !== wildcard &&
            route.method === wildcard.method &&
            coversHost(wildcard.host, route.host) &&
            shadows(wildcard.path, route.path) &&
            isStricter(policy, route, wildcard),
        )
        if (stricter !== undefined)
          yield {
            path: ['routes', index, 'path'],
            message: `${nameOfRoute(wildcard)}: admits callers that ${nameOfRoute(stricter)} refuses, and gets every other path beside it`,
            suggestion: 'name the paths that are open instead of the wildcard',
          }
      }
    },
  },
  'look-alike-routes': {
    severity: 'info',
    reason: 'An origin could read some paths of one route as the other; the gateway refuses them.',
    *find({ routes }) {
      for (const [index, route] of routes.entries()) {
        const [other] = findLookAlikes(route, routes)
        if (other !== undefined)
          yield {
            path: ['routes', index, 'path'],
            message: `${nameOfRoute(route)}: requests that an origin could read as ${nameOfRoute(other.route)} are refused`,
            suggestion: `set originSpelling on ${nameOfRoute(other.route)} if the origin compares exactly`,
          }
      }
    },
  },
  'unchecked-body': {
    severity: 'warning',
    reason: 'The origin gets whatever body the caller sends.',
    *find({ routes }) {
      for (const [index, route] of routes.entries())
        if (
          mayHaveBody(route) &&
          route.input.body === undefined &&
          !route.inspect?.jsonRpc &&
          !route.mcp
        )
          yield {
            path: ['routes', index],
            message: `${nameOfRoute(route)}: its body has no schema`,
            suggestion: 'add input.body, or maxBodyBytes: 0 if it has no body',
          }
    },
  },
  'unlimited-write-in-outage': {
    severity: 'warning',
    reason: 'While Redis fails, a limit with onUnavailable allow does not limit.',
    *find({ routes }) {
      for (const [index, route] of routes.entries())
        for (const { name, onUnavailable } of isWrite(route) ? route.limits : [])
          if (onUnavailable === 'allow')
            yield {
              path: ['routes', index, 'limits'],
              message: `${nameOfRoute(route)}: ${name} has onUnavailable: 'allow', and this route writes`,
              suggestion: "use a limit with onUnavailable: 'deny'",
            }
    },
  },
  'anonymous-write': {
    severity: 'warning',
    reason: 'Anybody may change data, and no event names who did.',
    *find({ routes }) {
      for (const [index, route] of routes.entries())
        if (isWrite(route) && route.permission === undefined)
          yield {
            path: ['routes', index],
            message: `${nameOfRoute(route)}: anonymous callers may write`,
            suggestion: 'require a permission',
          }
    },
  },
  'relation-without-parameter': {
    severity: 'warning',
    reason: 'Every request checks the same object, although the path names one.',
    *find({ routes }) {
      for (const [index, { relation, ...route }] of routes.entries()) {
        if (relation === undefined || !route.path.includes(':')) continue
        let reads = false
        relation.queryOf(roleCaller([]), () => {
          reads = true
          return 'x'
        })
        if (!reads)
          yield {
            path: ['routes', index, 'relation'],
            message: `${nameOfRoute(route)}: its relation uses no parameter of the path`,
            suggestion: "name the object by one, such as 'order:{params.id}'",
          }
      }
    },
  },
  'audience-of-anonymous-route': {
    severity: 'warning',
    reason: 'An anonymous caller has no token, so the route requires no audience.',
    *find({ routes }) {
      for (const [index, route] of routes.entries())
        if (route.audience !== undefined && route.permission === undefined)
          yield {
            path: ['routes', index, 'audience'],
            message: `${nameOfRoute(route)}: is open to anonymous callers, who have no audience`,
            suggestion: 'require a permission, or remove audience',
          }
    },
  },
  'audience-without-issuer': {
    severity: 'warning',
    reason: 'No entry of ISSUERS has the audience, so probably no token can open the route.',
    *find({ routes }, variables) {
      const suspect = new Set(withoutIssuer(routes, variables))
      for (const [index, route] of routes.entries())
        if (suspect.has(route))
          yield {
            path: ['routes', index, 'audience'],
            message: `${nameOfRoute(route)}: no entry of ISSUERS has the audience ${route.audience}`,
            suggestion: 'correct the audience, or add it to an entry of ISSUERS',
          }
    },
  },
  'unknown-mapped-role': {
    severity: 'warning',
    reason: 'A role that rolesMap of an issuer names and the policy does not have grants nothing.',
    find: unknownMappedRoles,
  },
  'login-age': {
    severity: 'info',
    reason: 'Only a provider that sends auth_time can show that a sign-in is recent.',
    *find({ routes }, variables) {
      for (const [index, route] of routes.entries())
        if (route.authentication?.maxAgeSeconds !== undefined)
          yield {
            path: ['routes', index, route.session === undefined ? 'authentication' : 'session'],
            message: `${nameOfRoute(route)}: authentication.maxAgeSeconds needs auth_time in ID tokens and access tokens; ${sendersOfAuthTime(variables)}`,
            suggestion: 'sign in at each provider and call the route, then silence this rule here',
          }
    },
  },
  'slow-pattern': {
    severity: 'warning',
    reason: 'A pattern whose run time is not linear lets one request block the process.',
    *find({ routes }, _, runTimes) {
      if (runTimes === undefined) return
      for (const [index, route] of routes.entries())
        for (const { path, name, used } of patternsOf(route)) {
          const mistake = runTimes.mistakeIn(used.pattern, used.maxLength)
          if (mistake !== undefined)
            yield {
              path: ['routes', index, ...path],
              message: `${nameOfRoute(route)}: the pattern ${used.pattern.source} of ${name} ${mistake}`,
              suggestion:
                'rewrite it so that no text can match in several ways, or put z.maxLength(count, { abort: true }) before it',
            }
        }
    },
  },
  'observe-mode': {
    severity: 'info',
    reason: 'A rule in observe mode is recorded, and refuses nothing.',
    *find({ routes }) {
      for (const [index, route] of routes.entries()) {
        const observed = [
          ...(route.permissionMode === 'observe' ? ['permission'] : []),
          ...(route.relation?.mode === 'observe' ? ['relation'] : []),
          ...(route.limits.some(({ mode }) => mode === 'observe') ? ['limits'] : []),
        ]
        for (const field of observed)
          yield {
            path: ['routes', index, field],
            message: `${nameOfRoute(route)}: ${field} is in observe mode`,
            suggestion: "set mode: 'enforce' when the audit trail shows no wrong refusals",
          }
      }
    },
  },
} as const satisfies Readonly<Record<string, Rule>>

export type RuleName = keyof typeof RULES

/** Returns the findings of all rules, in the order of the route table. */
export function lint(
  policy: Policy,
  variables: NodeJS.ProcessEnv = process.env,
  runTimes?: RunTimes,
): readonly Finding[] {
  return (Object.entries(RULES) as [RuleName, Rule][])
    .flatMap(([rule, { severity, find }]) =>
      [...find(policy, variables, runTimes)].map((finding) => ({ rule, severity, ...finding })),
    )
    .sort((one, another) => rowOf(one) - rowOf(another))
}

const rowOf = ({ path: [field, index] }: Finding) => (field === 'routes' ? Number(index) : -1)

/** Reports whether the profile of the authorization server demands proofs of its clients. */
const bindsTokens = (features: Policy['features']): boolean =>
  features.some(
    ({ name, settings = {} }) =>
      name === 'authorizationServer' && 'profile' in settings && settings.profile === 'fapi2',
  )

/** Yields the permissions that a route requires, and those that each of its calls requires as well. */
function* demandsOf(route: PolicyRoute) {
  const { permission, mcp } = route
  const of = nameOfRoute(route)
  if (permission !== undefined) yield { permission, of, field: 'permission' }
  const calls = callsOf(route)
  for (const name of calls?.names ?? []) {
    const demanded = calls?.find(name)?.permission
    if (demanded !== undefined && demanded !== permission)
      yield {
        permission: demanded,
        of: `${of}: ${name}`,
        field: mcp === undefined ? 'inspect' : 'mcp',
      }
  }
}

/** Reports whether some caller is admitted by `open`, and refused by `route`. */
function isStricter({ roles }: Policy, route: PolicyRoute, open: PolicyRoute): boolean {
  if (route.relation !== undefined && open.relation === undefined) return true
  const authorize = createAuthorizer(roles)
  const callers: (Principal | null)[] = [
    null,
    ...[...roles.keys()].map((role) => roleCaller([role])),
  ]
  return callers.some(
    (caller) => admits(open, caller, authorize) && !admits(route, caller, authorize),
  )
}
