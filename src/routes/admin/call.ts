/** A call of the operators' API: what it asks for, what it answers, and what it does. */
import type { Context, MiddlewareHandler } from 'hono'
import type * as z from 'zod'
import { bodyOf, callerOf, type GatewayVariables } from '../../context.ts'
import { Denied } from '../../errors.ts'
import type { ChangeVariables } from '../../middleware/audit.ts'
import { validate, wholeOf } from '../../middleware/validate.ts'
import type { Method, PolicyLimit, PolicyRoute } from '../../policy.ts'
import type { Principal } from '../../tokens/principal.ts'
import type { Operation } from '../operation.ts'
import { ownRoute } from '../own-route.ts'
import { type OperatorCall, permissionOf } from './permissions.ts'

type AdminContext = Context<{ Variables: GatewayVariables & ChangeVariables }>

/** What a call is told of its request, all of it checked. */
export interface AdminRequest<Params, Query, Body> {
  readonly params: Params
  readonly query: Query
  readonly body: Body
  readonly operator: Principal
  /** Subject of the operator. */
  readonly by: string
  /** Puts what was done on record; `target` is an id, never a secret. */
  changed(action: string, target: string): void
  /** Sets a header of the answer. */
  header(name: string, value: string): void
}

type OutputOf<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined

/** One call. `reply` is what `handle` returns, or undefined for 204. */
export interface CallDefinition<
  Params extends z.ZodObject | undefined,
  Query extends z.ZodObject | undefined,
  Body extends z.ZodType | undefined,
> {
  readonly method: Method
  /** Below `/-/admin`. */
  readonly path: string
  readonly permission: OperatorCall
  readonly id: string
  readonly summary: string
  readonly description?: string
  readonly params?: Params
  readonly query?: Query
  readonly body?: Body
  /** Default false: a request without a body has the value `{}`. */
  readonly bodyOptional?: boolean
  /** Default: whatever is no GET changes something. */
  readonly changes?: boolean
  /** Shown in the documentation. */
  readonly example?: object
  readonly status: 200 | 201 | 204
  readonly answer: string
  /** Only described, so it is made when somebody asks for the description. */
  readonly reply?: () => z.ZodType
  /** Statuses of problems that other calls of its kind do not have. */
  readonly problems?: readonly number[]
  handle(
    request: AdminRequest<OutputOf<Params>, OutputOf<Query>, OutputOf<Body>>,
  ): Promise<unknown> | unknown
}

/** A call, ready to be put behind the guards of the pipeline. */
export interface AdminCall {
  /** As `createGateway` guards it; its path is from the root. */
  readonly route: PolicyRoute
  /** Or it only tells something. */
  readonly changes: boolean
  /** After the guards; the last one does what the call is for, and the others read its body. */
  readonly handlers: readonly MiddlewareHandler[]
  readonly operation: Operation
}

const ADMIN_PATH = '/-/admin'
/** 64 KiB. */
const MAX_BODY_BYTES = 65_536
/** What any guarded call can answer. */
const PROBLEMS = [400, 401, 403, 405, 413, 429, 500, 503]

/** Makes calls of a group. `limits` are those that operators' requests count in. */
export function adminGroup(tag: string, limits: readonly PolicyLimit[]) {
  return function adminCall<
    Params extends z.ZodObject | undefined = undefined,
    Query extends z.ZodObject | undefined = undefined,
    Body extends z.ZodType | undefined = undefined,
  >(call: CallDefinition<Params, Query, Body>): AdminCall {
    const { method, params, query, body, status, bodyOptional = false } = call
    const path = ADMIN_PATH + call.path
    const permission = permissionOf(call.permission)
    const input = {
      ...(params && { params }),
      ...(query && { query }),
      ...(body && !bodyOptional && { body }),
    }
    return {
      route: ownRoute({
        ...{ method, path, permission, limits, input },
        maxBodyBytes: body === undefined ? 0 : MAX_BODY_BYTES,
      }),
      changes: call.changes ?? method !== 'GET',
      handlers: [
        ...(body === undefined ? [refuseBody] : []),
        ...(body !== undefined && bodyOptional ? [ifSent(validate({ body }))] : []),
        async function handleCall(context) {
          const c = context as AdminContext
          const operator = operatorOf(c)
          const reply = await call.handle({
            params: params?.parse(c.req.param()) as OutputOf<Params>,
            query: query?.parse(validatedQuery(c)) as OutputOf<Query>,
            body: body?.parse(sent(c)) as OutputOf<Body>,
            operator,
            by: operator.subject,
            changed: (action, target) => c.set('change', { action, target }),
            header: (name, value) => c.header(name, value),
          })
          c.header('Cache-Control', 'no-store')
          c.header('X-Content-Type-Options', 'nosniff')
          return status === 204 ? c.body(null, 204) : c.json(reply as object, status)
        },
      ],
      operation: {
        method,
        path,
        id: call.id,
        tag,
        summary: call.summary,
        description: `${call.description ?? ''}\n\nNeeds the permission \`${permission}\`.`.trim(),
        ...(params && { params }),
        ...(query && { query }),
        ...(body && {
          body: { schema: body, optional: bodyOptional, example: call.example ?? {} },
        }),
        answers: {
          [status]: { description: call.answer, ...(call.reply && { schema: call.reply }) },
        },
        problems: [
          ...PROBLEMS,
          ...(call.problems ?? []),
          ...(params === undefined ? [] : [404]),
          ...(body === undefined ? [] : [415]),
          ...((params ?? query ?? body) ? [422] : []),
        ],
        security: 'operator',
      },
    }
  }
}

/** Refuses input that has the right form and names nothing that there is. */
export function inputRefused(where: 'params' | 'query' | 'body', path: string, message: string) {
  return new Denied({ code: 'input_invalid', errors: [{ in: where, path, message }] })
}

/** Refuses an id that nothing has. */
export const unknownId = () => new Denied({ code: 'route_unknown' })

/** Seconds since the epoch as RFC 3339 says them. */
export const timeOf = (seconds: number) => new Date(seconds * 1000).toISOString()
export const timeOrNull = (seconds: number | null) => (seconds === null ? null : timeOf(seconds))

/** Reads a body that should not be there, which `limitBody` refuses at its first byte. */
const refuseBody: MiddlewareHandler = async function refuseBody(c, next) {
  const body = bodyOf(c)
  if (body !== null) await wholeOf(body)
  await next()
}

/** Applies a guard to requests that have a body. */
function ifSent(guard: MiddlewareHandler): MiddlewareHandler {
  return function guardBody(c, next) {
    return bodyOf(c) === null ? next() : guard(c, next)
  }
}

/** The query as `validate` read it: Hono's reading of odd escapes differs. */
function validatedQuery(c: AdminContext): Record<string, string> {
  return Object.fromEntries(new URL(c.req.url).searchParams)
}

/** The value of a body that `validate` has read and found good. */
function sent(c: AdminContext): unknown {
  const body = bodyOf(c)
  return body instanceof Uint8Array ? JSON.parse(new TextDecoder().decode(body)) : {}
}

function operatorOf(c: AdminContext): Principal {
  const principal = callerOf(c)
  if (principal === null) throw new Error('operatorOf: authorize() must run before this')
  return principal
}
