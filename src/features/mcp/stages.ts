/** Stages of a route before an MCP server. */
import type { Context, MiddlewareHandler } from 'hono'
import type { Authorizer } from '../../access/permissions.ts'
import type { Principal } from '../../access/principal.ts'
import { Denied } from '../../errors.ts'
import { isExactMember } from '../../http/exact-numbers.ts'
import { writeHeaders } from '../../http/response-headers.ts'
import { DEFAULT_INSPECTION } from '../../inspection/definition.ts'
import { inspectJson } from '../../inspection/json.ts'
import {
  isId,
  isRecord,
  type JsonObject,
  type JsonRpcCall,
  malformedCall,
  parseCalls,
} from '../../inspection/json-rpc.ts'
import type { InspectionLimits } from '../../inspection/limits.ts'
import type { CallVariables } from '../../middleware/audit.ts'
import {
  type BodyVariables,
  callerOf,
  type ForwardHeadersVariables,
  forwardHeadersOf,
  type RequestIdVariables,
} from '../../middleware/context.ts'
import { createMiddleware } from '../../middleware/create-middleware.ts'
import { permittedTo } from '../../middleware/inspect.ts'
import type { OpenStreamVariables } from '../../middleware/open-stream.ts'
import {
  type RelationOptions,
  requireRelation,
  resolveRelation,
} from '../../middleware/relation.ts'
import { receivedHeaders } from '../../middleware/request-headers.ts'
import { readJsonText } from '../../middleware/validate.ts'
import { type McpGuard, readTargets, type Target } from './access.ts'
import type { Binding } from './binding.ts'
import { refuseOtherHeaders, usesSessions, VERSION_HEADER } from './request-headers.ts'

export interface McpVariables {
  /** Set before `admit`, for POST: the message, or why it is refused. */
  'portcullis.mcpMessage': McpMessage | Denied
  /** Set before `admit`: the id of a request, also of one that is refused. */
  'portcullis.mcpId': string | number
  /** Set by the inspection: the parts that identifiers are bound to. */
  'portcullis.mcpOwner': readonly string[]
}

export interface McpMessage {
  readonly message: JsonObject
  /** Undefined: the message is a response. */
  readonly call: JsonRpcCall | undefined
  readonly targets: readonly Target[]
}

export type McpEnvironment = {
  Variables: Partial<McpVariables & CallVariables & OpenStreamVariables & RequestIdVariables> &
    BodyVariables &
    ForwardHeadersVariables
}

export interface McpTransportOptions {
  /** Whether pages of this origin may call the server. */
  readonly allowsOrigin: (origin: string) => boolean
  /** Accepted values of `MCP-Protocol-Version`. */
  readonly versions: ReadonlySet<string>
  /** URL of the metadata of the gateway, and of the server. */
  readonly metadata: { readonly general: string; readonly own: string }
  /** Scopes that a client needs. Empty: scopes do nothing at the issuer. */
  readonly scopes: readonly string[]
  /** All scopes that do something at the server. */
  readonly supported: ReadonlySet<string>
  readonly isPermitted: Authorizer
}

/**
 * Refuses pages of other origins (`cross_origin_request`, against DNS rebinding) and, except for POST,
 * versions of the protocol that are not accepted. A refusal of any later stage names the metadata of the
 * server and the scopes that the client needs (RFC 9728 section 5.1, RFC 6750 section 3).
 */
export function mcpTransport(options: McpTransportOptions): MiddlewareHandler {
  const { allowsOrigin, versions, metadata, scopes, supported, isPermitted } = options
  const parameterOf = (url: string) => `resource_metadata="${url}"`

  /** Returns undefined if another login cannot help. */
  function challenge(text: string, { denial }: Denied, c: Context): string | undefined {
    const own = text.replace(parameterOf(metadata.general), parameterOf(metadata.own))
    if (denial.code !== 'permission_missing')
      return scopes.length === 0 ? own : `${own}, scope="${scopes.join(' ')}"`
    const { permission } = denial
    const caller = callerOf(c)
    const held = caller?.scopes ?? []
    const helps = caller && isPermitted({ ...caller, scopes: [...held, permission] }, permission)
    if (scopes.length === 0 || !helps) return undefined
    // Some clients request only these scopes, and would lose those that they have.
    const needed = new Set([...scopes, ...held.filter((scope) => supported.has(scope)), permission])
    return own.replace(/scope="[^"]*"/, `scope="${[...needed].join(' ')}"`)
  }

  return createMiddleware(async function mcpTransport(c, next) {
    const received = receivedHeaders(c)
    const origin = received.get('origin')
    if (origin !== undefined && !allowsOrigin(origin))
      throw new Denied({ code: 'cross_origin_request', check: 'mcp_origin' })
    // That of a message is refused with the id of the message.
    if (c.req.method !== 'POST') refuseOtherVersions(received, versions)
    await next()
    const { error } = c
    if (!(error instanceof Denied)) return
    const text = c.res.headers.get('WWW-Authenticate')
    if (text === null) return
    const changed = challenge(text, error, c)
    writeHeaders(c, (headers) => {
      if (changed === undefined) headers.delete('WWW-Authenticate')
      else headers.set('WWW-Authenticate', changed)
    })
  })
}

function refuseOtherVersions(
  headers: ReadonlyMap<string, string>,
  versions: ReadonlySet<string>,
): void {
  const version = headers.get(VERSION_HEADER)
  if (version !== undefined && !versions.has(version))
    throw new Denied({ code: 'malformed_request', check: 'mcp_version' })
}

export interface McpAdmitOptions {
  readonly limits?: InspectionLimits
  /** Accepted values of `MCP-Protocol-Version`. */
  readonly versions: ReadonlySet<string>
  readonly guard: Pick<McpGuard, 'hasMethod'>
  /** The stage `admit` of tools with limits or a relation of their own. */
  readonly ofTools: ReadonlyMap<string, MiddlewareHandler>
  /** The stage `admit` of all other calls. */
  readonly otherwise: MiddlewareHandler
}

/**
 * Admits a call by the conditions of its tool, in one round trip: so it reads the body first. A body
 * that is refused is admitted like a call without a tool, and refused by {@link mcpInspection}, so that
 * limits count it and callers without the permission of the route learn nothing about it.
 */
export function mcpAdmit(options: McpAdmitOptions): MiddlewareHandler {
  const { ofTools, otherwise } = options
  return createMiddleware<McpEnvironment>(async function admit(c, next) {
    if (c.req.method !== 'POST') return otherwise(c, next)
    const received = await readMessage(c, options)
    c.set('portcullis.mcpMessage', received)
    if (received instanceof Denied) return otherwise(c, next)
    const { call, targets } = received
    const [target] = targets
    if (call !== undefined) {
      const method = call.method.slice(0, MAX_AUDITED_CHARS)
      const name = target?.name.slice(0, MAX_AUDITED_CHARS)
      c.set('portcullis.call', { method, ...(name !== undefined && { name }) })
    }
    const admit = target?.what === 'tool' ? ofTools.get(target.name) : undefined
    return (admit ?? otherwise)(c, next)
  })
}

/** An event must stay far below its maximum size, whatever a client sends. */
const MAX_AUDITED_CHARS = 256

async function readMessage(
  c: Context<McpEnvironment>,
  { limits, versions, guard }: McpAdmitOptions,
): Promise<McpMessage | Denied> {
  try {
    const message = inspectJson(
      await readJsonText(c as unknown as Context<{ Variables: BodyVariables }>),
      limits ?? DEFAULT_INSPECTION,
    )
    // The revisions since 2025-06-18 have no batches.
    if (!isRecord(message)) throw malformedCall('batch')
    const id = requestIdIn(message)
    if (id !== undefined) c.set('portcullis.mcpId', id)
    const [call] = parseCalls(message, 1)
    const headers = receivedHeaders(c)
    refuseOtherVersions(headers, versions)
    if (call !== undefined) refuseUnknownMethod(call.method, guard, usesSessions(headers))
    const targets = call === undefined ? [] : readTargets(call)
    refuseOtherHeaders(headers, message, targets)
    return { message, call, targets }
  } catch (error) {
    if (error instanceof Denied) return error
    throw error
  }
}

/** Returns the id of a request. Undefined: the client waits for no answer. */
export function requestIdIn(message: JsonObject): string | number | undefined {
  if (!Object.hasOwn(message, 'method')) return undefined
  const { id } = message
  return isId(id) ? id : undefined
}

/** Before 2026-07-28, a response with 404 says that the session has ended. */
function refuseUnknownMethod(
  method: string,
  guard: McpAdmitOptions['guard'],
  usesSessions: boolean,
): void {
  if (guard.hasMethod(method, usesSessions)) return
  throw new Denied({
    code: usesSessions ? 'malformed_request' : 'not_found',
    check: UNKNOWN_METHOD,
  })
}

/** The check of a method that the server does not have, or the policy does not list. */
export const UNKNOWN_METHOD = 'mcp_method'

/** Returns an argument of the tool that is called, if it can be part of an object's name. */
export function readArgument(c: Context, name: string): string | undefined {
  const received = (c as Context<McpEnvironment>).get('portcullis.mcpMessage')
  if (received === undefined || received instanceof Denied) return undefined
  const [target] = received.targets
  if (target?.what !== 'tool' || !Object.hasOwn(target.values, name)) return undefined
  const value = target.values[name]
  const isText = typeof value === 'string'
  return isText || (Number.isSafeInteger(value) && isExactMember(target.values, name))
    ? String(value)
    : undefined
}

export interface McpInspectionOptions {
  /** Identifies the server: identifiers of other servers are not valid here. */
  readonly resource: string
  readonly guard: McpGuard
  readonly binding: Binding
  readonly authorizer: Authorizer
  readonly relations: ReadonlyMap<string, RelationOptions>
  /** Tools with a definition that is not the approved one, as far as this isolate has seen. */
  readonly changed: ReadonlySet<string>
  /** What comes after it. Default none. */
  readonly next?: MiddlewareHandler | undefined
}

/**
 * Refuses what the caller may not do: calls and tools that the policy does not list or permit
 * (`call_refused`, `permission_missing`), arguments that do not match (`invalid_input`), relations
 * that the caller does not have, sessions of other callers (`not_found`), and answers to requests that
 * the server did not make for this session (`malformed_request`). Must run after {@link mcpAdmit}.
 */
export function mcpInspection(options: McpInspectionOptions): MiddlewareHandler {
  const { resource, guard, binding, authorizer, relations, changed, next: inspection } = options

  async function checkCall(
    c: Context<McpEnvironment>,
    call: JsonRpcCall,
    targets: readonly Target[],
  ) {
    guard.guard(call, targets, permittedTo(c, authorizer))
    const [target] = targets
    if (target?.what !== 'tool') return
    if (changed.has(target.name)) throw new Denied({ code: 'call_refused', what: 'definition' })
    const relation = relations.get(target.name)
    if (relation === undefined) return
    const principal = callerOf(c, 'mcp')
    if (principal === null) throw new Denied({ code: 'missing_token' })
    await requireRelation(c, resolveRelation(c, relation, principal), relation)
  }

  async function checkAnswer(
    c: Context<McpEnvironment>,
    message: JsonObject,
    owner: readonly string[],
  ): Promise<void> {
    const { id } = message
    const original =
      typeof id === 'string' && usesSessions(receivedHeaders(c))
        ? await binding.idIn('request', owner, id)
        : undefined
    if (original === undefined) throw malformedCall('answer')
    const text = JSON.stringify({ ...message, id: JSON.parse(original) })
    c.set('portcullis.body', new TextEncoder().encode(text))
  }

  return createMiddleware<McpEnvironment>(async function mcp(c, next) {
    const received = c.get('portcullis.mcpMessage')
    if (received instanceof Denied) throw received
    const caller = [resource, ...identityOf(callerOf(c, 'mcp'))]
    const headers = receivedHeaders(c)
    const forward = forwardHeadersOf(c, 'mcp')
    const unbind = async (name: string, what: 'session' | 'event', owner: readonly string[]) => {
      const bound = headers.get(name)
      if (bound === undefined) return ''
      const id = await binding.idIn(what, owner, bound)
      // The client then begins a new session.
      if (id === undefined) throw new Denied({ code: 'not_found', check: `mcp_${what}` })
      forward.set(name, id)
      return id
    }
    const owner = [...caller, await unbind('mcp-session-id', 'session', caller)]
    await unbind('last-event-id', 'event', owner)
    c.set('portcullis.mcpOwner', owner)
    // The messages of the server are read.
    forward.set('accept-encoding', 'identity')
    if (received?.call !== undefined) await checkCall(c, received.call, received.targets)
    else if (received !== undefined) await checkAnswer(c, received.message, owner)
    return inspection === undefined ? next() : inspection(c, next)
  })
}

function identityOf(caller: Principal | null): readonly string[] {
  if (caller === null) return []
  return [caller.issuer, caller.subject, caller.client ?? '', caller.tenant ?? '']
}
