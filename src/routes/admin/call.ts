/** Defines a call of the operators' API: its input, its responses and its handler. */
import type { Context, MiddlewareHandler } from 'hono'
import * as z from 'zod/mini'
import type { Principal } from '../../access/principal.ts'
import { unmetByCaller } from '../../access/tokens/login.ts'
import { Denied } from '../../errors.ts'
import type { ChangeVariables } from '../../middleware/audit.ts'
import { bodyOf, callerOf, type GatewayVariables, recordField } from '../../middleware/context.ts'
import type { Readmission } from '../../middleware/readmit.ts'
import { readWhole, validate } from '../../middleware/validate.ts'
import type { PolicyRoute } from '../../policy/policy.ts'
import { completeRoute } from '../../policy/route.ts'
import type { LoginDemand } from '../../problems/step-up.ts'
import { findingsOf, type RuleOf } from '../../validators/findings.ts'
import { ruleOf } from '../../validators/rule.ts'
import type { Operation } from '../operation.ts'
import type { CallerStages, CallFrame } from './frame.ts'
import { type FeaturePermission, type OperatorCall, permissionOf } from './permissions.ts'
import type { TenantScope } from './tenant.ts'

type CallContext = Context<{ Variables: GatewayVariables & ChangeVariables }>

interface AdminRequest<Params, Query, Body> {
  readonly params: Params
  readonly query: Query
  readonly body: Body
  readonly operator: Principal
  /** Confines the operator to its tenant, for this call. */
  readonly scope: TenantScope
  /** Records the change for the audit event. `target` is an id, never a secret. */
  changed(action: string, target: string): void
  header(name: string, value: string): void
}

type OutputOf<Schema> = Schema extends z.core.$ZodType ? z.core.output<Schema> : undefined

interface CallDefinition<
  Params extends z.core.$ZodObject | undefined,
  Query extends z.core.$ZodObject | undefined,
  Body extends z.core.$ZodType | undefined,
> extends Pick<Operation, 'method' | 'id' | 'summary' | 'description' | 'toJsonSchema'> {
  /** Below `/-/admin`. */
  readonly path: string
  readonly permission: OperatorCall | FeaturePermission
  readonly params?: Params
  readonly query?: Query
  readonly body?: Body
  /** If true, a request without a body has the value `{}`. Default false. */
  readonly bodyOptional?: boolean
  /** Whether the call changes something. Default: true for every method but GET. */
  readonly changes?: boolean
  readonly example?: object
  /** Default: 200 with a `reply`, and 204 without. */
  readonly status?: 200 | 201 | 204
  readonly response: string
  /** Schema of the return value of `handle`, only for the API description. */
  readonly reply?: () => z.core.$ZodType
  /** Problem statuses that not every guarded call has. */
  readonly problems?: readonly number[]
  handle(
    request: AdminRequest<OutputOf<Params>, OutputOf<Query>, OutputOf<Body>>,
  ): Promise<unknown> | unknown
}

export interface AdminCall {
  readonly route: PolicyRoute
  /** Run after the guards. */
  readonly handlers: readonly MiddlewareHandler[]
  /**
   * Whether a caller whose body was slow is admitted again before the handlers, and their open responses
   * end with the rights of the caller. Default: the handlers do it, and their responses are short.
   */
  readonly readmits?: boolean
  /**
   * Runs the call for the operator of another call of the gateway, which has the permission of this call. The input
   * is checked. Default: it cannot be run so.
   */
  readonly invoke?: (c: Context, input: CallInput) => Promise<unknown>
  /** Accept other callers than those with a token. Default: none. */
  readonly stages?: CallerStages
  /** Adds the rules of the input to findings, for the command line. Default: they have none. */
  readonly ruleOf?: RuleOf
  readonly operation: Operation
}

export interface CallInput {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** The stages of the call itself have not run. Tokens are not affected. */
function requireLogin(operator: Principal, demand: LoginDemand, nowMs: number): void {
  if (operator.signIn !== undefined && unmetByCaller(operator, demand, nowMs) !== undefined)
    throw new Denied({ code: 'sign_in_required', check: 'step_up', demand })
}

export type CallGroup = (frame: CallFrame) => readonly AdminCall[]

const ADMIN_PATH = '/-/admin'
/** 64 KiB. */
const MAX_BODY_BYTES = 65_536
/** Problem statuses of every guarded call. */
const PROBLEMS = [400, 401, 403, 405, 413, 429, 500, 503]

/** Returns a function that creates the calls of a group, which is a tag of the API description. */
export function adminGroup(
  tag: string,
  {
    operatorLimits,
    tenantIssuers,
    admitAgain,
    acceptPeople,
    peopleDemand,
    now,
  }: Pick<
    CallFrame,
    'operatorLimits' | 'tenantIssuers' | 'admitAgain' | 'acceptPeople' | 'peopleDemand' | 'now'
  >,
) {
  return function adminCall<
    Params extends z.core.$ZodObject | undefined = undefined,
    Query extends z.core.$ZodObject | undefined = undefined,
    Body extends z.core.$ZodType | undefined = undefined,
  >(call: CallDefinition<Params, Query, Body>): AdminCall {
    const { id, method, summary, params, query, body, reply, bodyOptional = false } = call
    const status = call.status ?? (reply === undefined ? 204 : 200)
    const path = ADMIN_PATH + call.path
    const permission = permissionOf(call.permission)
    const changes = call.changes ?? method !== 'GET'
    const run = (c: CallContext, input: Required<CallInput>) => {
      const operator = operatorOf(c)
      return call.handle({
        params: (params && parse('params', params, input.params)) as OutputOf<Params>,
        query: (query && parse('query', query, input.query)) as OutputOf<Query>,
        body: (body && parse('body', body, input.body)) as OutputOf<Body>,
        operator,
        scope: { operator, call: call.permission, tenantIssuers },
        changed(action, target) {
          c.set('portcullis.change', { action, target })
          const { name } = operator.signIn ?? {}
          if (name !== undefined) recordField(c, 'operator', name)
        },
        header: (name, value) => c.header(name, value),
      })
    }
    const parameters = { ...(params && { params }), ...(query && { query }) }
    return {
      route: completeRoute({
        method,
        path,
        permission,
        limits: operatorLimits,
        input: { ...parameters, ...(body && !bodyOptional && { body }) },
        maxBodyBytes: body === undefined ? 0 : MAX_BODY_BYTES,
      }),
      async invoke(c, { params = {}, query = {}, body }) {
        if (changes && peopleDemand !== undefined) requireLogin(operatorOf(c), peopleDemand, now())
        return run(c, { params, query, body })
      },
      ...(acceptPeople && { stages: acceptPeople(changes) }),
      ruleOf,
      handlers: [
        ...(body === undefined ? [refuseBody] : []),
        ...(body !== undefined && bodyOptional ? [ifSent(validate({ body, ruleOf }))] : []),
        readmitOperator(admitAgain, changes),
        async function handleCall(context) {
          const c = context as CallContext
          const result = await run(c, {
            params: c.req.param(),
            query: validatedQuery(c),
            body: body && validatedBody(c),
          })
          c.header('Cache-Control', 'no-store')
          c.header('X-Content-Type-Options', 'nosniff')
          return status === 204 ? c.body(null, 204) : c.json(result as object, status)
        },
      ],
      operation: {
        method,
        path,
        id,
        tag,
        summary,
        description:
          `${call.description ?? ''}\n\nRequires the permission \`${permission}\`.`.trim(),
        ...parameters,
        ...(body && {
          body: { schema: body, optional: bodyOptional, example: call.example ?? {} },
        }),
        responses: { [status]: { description: call.response, ...(reply && { schema: reply }) } },
        problems: [
          ...PROBLEMS,
          ...(call.problems ?? []),
          ...(params === undefined ? [] : [404]),
          ...(body === undefined ? [] : [415]),
          ...((params ?? query ?? body) ? [422] : []),
        ],
        security: 'operator',
        toJsonSchema: call.toJsonSchema,
      },
    }
  }
}

/** Parses input. `validate` has checked that of a request; the input of another call may be wrong. */
function parse(where: 'params' | 'query' | 'body', schema: z.core.$ZodType, input: unknown) {
  const { data, success } = z.safeParse(schema, input)
  if (success) return data
  throw new Denied({
    code: 'invalid_input',
    errors: findingsOf(where, schema, input, '', ruleOf),
  })
}

/** Reads an unexpected body, so that `limitBody` refuses it at its first byte. */
export const refuseBody: MiddlewareHandler = async function refuseBody(c, next) {
  const body = bodyOf(c)
  if (body !== null) await readWhole(body)
  await next()
}

function ifSent(guard: MiddlewareHandler): MiddlewareHandler {
  return function guardBody(c, next) {
    return bodyOf(c) === null ? next() : guard(c, next)
  }
}

/**
 * Creates the guard that comes after a body was read. A revoked operator must not change or read
 * anything with a request that began before the revocation and has a slow body. So the guard admits
 * the operator again if the call has a body; for a read-only call only if the body was slow.
 */
function readmitOperator(admitAgain: Readmission, changes: boolean): MiddlewareHandler {
  return async function readmitOperator(c: CallContext, next) {
    const sinceMs = c.get('portcullis.heldUpSinceMs')
    if (sinceMs !== undefined || (changes && c.req.raw.body !== null)) await admitAgain(c, sinceMs)
    await next()
  }
}

/** Returns the query as `validate` parsed it: Hono decodes malformed escapes differently. */
function validatedQuery(c: CallContext): Record<string, string> {
  return Object.fromEntries(new URL(c.req.url).searchParams)
}

function validatedBody(c: CallContext): unknown {
  const body = bodyOf(c)
  return body instanceof Uint8Array ? JSON.parse(new TextDecoder().decode(body)) : {}
}

function operatorOf(c: CallContext): Principal {
  const principal = callerOf(c)
  if (principal === null) throw new Error('operatorOf: authorize() must run before this')
  return principal
}
