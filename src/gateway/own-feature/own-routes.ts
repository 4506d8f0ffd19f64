/** The routes and operators' calls of a feature, in the form of those of the gateway. */
import type { Context, MiddlewareHandler } from 'hono'
import * as z from 'zod/mini'
import { limitsNamed } from '../../policy/limits.ts'
import type { Policy, PolicyLimit, PolicyRoute } from '../../policy/policy.ts'
import { completeRoute } from '../../policy/route.ts'
import { type AdminCall, adminGroup, type CallGroup, refuseBody } from '../../routes/admin/call.ts'
import { confinedTo, refuseTenant } from '../../routes/admin/tenant.ts'
import type { Operation, SecurityScheme, ToJsonSchema } from '../../routes/operation.ts'
import { ruleOf } from '../../validators/rule.ts'
import type { Declared, FeatureCallRequest, FeatureRoute } from './declaration.ts'
import { kebab } from './names.ts'
import { defectOf } from './own-stages.ts'

const ADMIN_PATH = '/-/admin'
/** 64 KiB. */
const MAX_BODY_BYTES = 65_536
/** Problem statuses of every guarded route. */
const PROBLEMS = [400, 401, 403, 405, 413, 429, 500, 503]
const ACTION = /^[a-z-]{1,40}$/

const caller: SecurityScheme = {
  type: 'http',
  scheme: 'bearer',
  description: "A caller's access token.",
}

/** Features have schemas of every kind. */
const toJsonSchema: ToJsonSchema = (schema, use) => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: use, unrepresentable: 'any' })
  return rest
}

type Problems = Declared['problems']

const statusesOf = (codes: readonly string[] = [], problems: Problems): readonly number[] =>
  codes.flatMap((code) => problems[code]?.status ?? [])

/** Returns the limits that a route names. Unknown names are left out: `mistakesInLimits` finds them. */
const limitsOf = (names: readonly string[] = [], { limits }: Policy): readonly PolicyLimit[] =>
  names.flatMap((name) => limitsNamed(limits, name))

export function* mistakesInLimits(
  name: string,
  routes: Declared['routes'],
  { limits }: Policy,
): Generator<string> {
  for (const [id, route] of Object.entries(routes))
    for (const limit of route.limits ?? []) {
      const [known] = limitsNamed(limits, limit)
      if (known === undefined) yield `features.${name}.routes.${id}.limits: unknown limit ${limit}`
      else if (route.anonymous && known.by !== 'address' && typeof known.by === 'string')
        yield `features.${name}.routes.${id}.limits: anonymous callers have no ${known.by} to limit ${limit} by`
    }
}

/** Returns a route as a row of the route table. */
export const rowOf = (
  { method, path, permission, limits, params, query, body }: FeatureRoute,
  policy: Policy,
): PolicyRoute =>
  completeRoute({
    method,
    path,
    permission,
    limits: limitsOf(limits, policy),
    input: { ...(params && { params }), ...(query && { query }), ...(body && { body }) },
    maxBodyBytes: body === undefined ? 0 : MAX_BODY_BYTES,
  })

/** Returns an operators' call as a row of the route table. */
export const rowOfCall = ({
  method,
  path,
  permission,
}: Declared['operatorCalls'][string]): PolicyRoute =>
  completeRoute({ method, path: ADMIN_PATH + path, permission })

/** Creates the routes of a feature. Their responses are not stored, unless they say so themselves. */
export const ownRoutes = (
  name: string,
  { routes, problems }: Pick<Declared, 'routes' | 'problems'>,
  handlers: Readonly<Record<string, (c: Context) => Response | Promise<Response>>>,
  policy: Policy,
): readonly AdminCall[] =>
  Object.entries(routes).flatMap(([id, route]) => {
    const handle = handlers[id]
    if (handle === undefined) return []
    const handler: MiddlewareHandler = async function ownRoute(c) {
      try {
        const response = await handle(c)
        if (!(response instanceof Response))
          throw new TypeError('a route of a feature returned no response')
        if (response.headers.has('Cache-Control')) return response
        const own = new Response(response.body, response)
        own.headers.set('Cache-Control', 'no-store')
        return own
      } catch (error) {
        throw defectOf(error)
      }
    }
    return [
      {
        route: rowOf(route, policy),
        handlers: [...(route.body === undefined ? [refuseBody] : []), handler],
        readmits: true,
        ruleOf,
        operation: operationOf(name, id, route, problems),
      },
    ]
  })

function operationOf(name: string, id: string, route: FeatureRoute, problems: Problems): Operation {
  const { method, path, permission, params, query, body, response, reply, summary } = route
  const needed = permission === undefined ? '' : `\n\nRequires the permission \`${permission}\`.`
  const description = ((route.description ?? '') + needed).trim()
  return {
    method,
    path,
    id,
    tag: name,
    summary,
    ...(description !== '' && { description }),
    ...(params && { params }),
    ...(query && { query }),
    ...(body && { body: { schema: body, example: route.example ?? {} } }),
    responses: { 200: { description: response, ...(reply && { schema: reply }) } },
    problems: [
      ...PROBLEMS,
      ...statusesOf(route.problems, problems),
      ...(body === undefined ? [] : [415]),
      ...((params ?? query ?? body) ? [422] : []),
    ],
    toJsonSchema,
    ...(permission !== undefined && { security: 'caller' as const, scheme: { caller } }),
  }
}

/** A request whose parts have the types of any schema. */
interface AnyRequest extends Omit<FeatureCallRequest<object>, 'params' | 'query' | 'body'> {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
}

type Handler = (request: AnyRequest) => unknown

/** Creates the operators' calls of a feature. */
export const ownCalls =
  (
    name: string,
    { operatorCalls, problems }: Pick<Declared, 'operatorCalls' | 'problems'>,
    handlers: Readonly<Record<string, Handler>>,
  ): CallGroup =>
  (frame) => {
    const call = adminGroup(name, frame)
    return Object.entries(operatorCalls).flatMap(([id, declared]) => {
      const handle = handlers[id]
      if (handle === undefined) return []
      return [
        call({
          ...declared,
          id,
          problems: statusesOf(declared.problems, problems),
          toJsonSchema,
          async handle({ params, query, body, operator, scope, changed }) {
            if (declared.tenants !== true) refuseTenant(scope)
            try {
              return await handle({
                params,
                query,
                body,
                operator,
                tenant: confinedTo(scope),
                changed(action, target) {
                  if (!ACTION.test(action)) throw new TypeError(`invalid action ${action}`)
                  changed(`${kebab(name)}.${action}`, target)
                },
              })
            } catch (error) {
              throw defectOf(error)
            }
          },
        }),
      ]
    })
  }
