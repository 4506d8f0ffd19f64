/** Checks JSON-RPC calls: the allowed methods and tools, their permissions and their arguments. */
import type { $ZodType } from 'zod/v4/core'
import { Denied } from '../errors.ts'
import { findingsOf } from '../validators/findings.ts'
import { TOOLS_CALL } from '../validators/inspect.ts'
import type { JsonRpcDefinition, McpTool } from './definition.ts'
import { isRecord, type JsonRpcCall, malformedCall } from './json-rpc.ts'

/** Returns whether the caller has a permission. */
export type IsPermitted = (permission: string) => boolean

/** Members of the `params` of `tools/call`. MCP allows `_meta` in every request. */
const CALL_MEMBERS: ReadonlySet<string> = new Set(['name', 'arguments', '_meta'])

/**
 * Creates the guard of a route's calls. It throws `Denied` (`malformed_request`) if one of them is
 * a malformed `tools/call`. Then it throws for the first call that is not allowed:
 * - `call_refused`: a method or a tool that the definition does not name
 * - `permission_missing`: the caller lacks the permission
 * - `invalid_input`: params or arguments that do not match their schema
 *
 * The permission is checked before the schema, so that findings do not describe tools that the
 * caller may not use. Names are compared exactly, in Maps: other cases and names such as
 * `constructor` match nothing.
 *
 * Does NOT check what a tool does with allowed arguments.
 */
export function createCallGuard({ methods, tools = {} }: JsonRpcDefinition) {
  const methodsByName = new Map(Object.entries(methods))
  const toolsByName = new Map(Object.entries(tools))

  function guardMethod({ method, params, pointer }: JsonRpcCall, isPermitted: IsPermitted): void {
    const entry = methodsByName.get(method)
    if (entry === undefined) throw new Denied({ code: 'call_refused', what: 'method' })
    if (entry === true) return
    demand(entry.permission, isPermitted)
    if (entry.params !== undefined) refuseUnmatched(entry.params, params, `${pointer}/params`)
  }

  function guardTool({ name, values, at }: ToolCall, isPermitted: IsPermitted): void {
    const entry = toolsByName.get(name)
    if (entry === undefined) throw new Denied({ code: 'call_refused', what: 'tool' })
    const tool: McpTool = entry === true ? {} : entry
    demand(tool.permission, isPermitted)
    if (tool.arguments !== undefined) refuseUnmatched(tool.arguments, values, at)
    else if (Object.keys(values).length > 0) throw noneTaken(at)
  }

  return function guardCalls(calls: readonly JsonRpcCall[], isPermitted: IsPermitted): void {
    // Check the form of all calls first: a batch with a malformed message is refused as a whole.
    const toolCalls = calls.map((call) =>
      call.method === TOOLS_CALL ? toolCallOf(call) : undefined,
    )
    for (const [index, call] of calls.entries()) {
      guardMethod(call, isPermitted)
      const toolCall = toolCalls[index]
      if (toolCall !== undefined) guardTool(toolCall, isPermitted)
    }
  }
}

interface ToolCall {
  readonly name: string
  readonly values: Readonly<Record<string, unknown>>
  /** JSON Pointer of the arguments. */
  readonly at: string
}

function toolCallOf({ params, pointer }: JsonRpcCall): ToolCall {
  if (!isRecord(params)) throw malformedCall('tool')
  for (const member of Object.keys(params))
    if (!CALL_MEMBERS.has(member)) throw malformedCall('tool')
  const { name, arguments: values = {}, _meta: meta = {} } = params
  if (typeof name !== 'string' || !isRecord(values) || !isRecord(meta)) throw malformedCall('tool')
  return { name, values, at: `${pointer}/params/arguments` }
}

function demand(permission: string | undefined, isPermitted: IsPermitted): void {
  if (permission !== undefined && !isPermitted(permission))
    throw new Denied({ code: 'permission_missing', permission })
}

function refuseUnmatched(schema: $ZodType, value: unknown, at: string): void {
  const errors = findingsOf('body', schema, value, at)
  if (errors.length > 0) throw new Denied({ code: 'invalid_input', errors })
}

function noneTaken(at: string): Denied {
  const errors = [{ in: 'body', path: at, message: 'This tool takes no arguments' }] as const
  return new Denied({ code: 'invalid_input', errors })
}
