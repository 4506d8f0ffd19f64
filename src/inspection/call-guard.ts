import { Denied } from '../errors.ts'
import type { Denial, InputError } from '../problems/reasons.ts'
import { findingsOf } from '../validators/findings.ts'
import { TOOLS_CALL } from '../validators/inspect.ts'
import type { JsonRpcDefinition, McpTool } from './definition.ts'
import {
  isRecord,
  type JsonObject,
  type JsonRpcCall,
  malformedCall,
  refuseOthers,
} from './json-rpc.ts'

/** Reports whether the caller has a permission. */
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

  return function guardCalls(calls: readonly JsonRpcCall[], isPermitted: IsPermitted): void {
    // Check the form of all calls first: a batch with a malformed message is refused as a whole.
    const toolCalls = calls.map((call) =>
      call.method === TOOLS_CALL ? parseToolCall(call) : undefined,
    )
    for (const [index, { method, params, pointer }] of calls.entries()) {
      const { params: schema } = allowed('method', methodsByName.get(method), isPermitted)
      if (schema !== undefined) refuse(findingsOf('body', schema, params, `${pointer}/params`))
      const toolCall = toolCalls[index]
      if (toolCall === undefined) continue
      const tool = allowed('tool', toolsByName.get(toolCall.name), isPermitted)
      refuse(findingsInArguments(tool, toolCall.values, `${pointer}/params/arguments`))
    }
  }
}

function parseToolCall({ params }: JsonRpcCall) {
  if (!isRecord(params)) throw malformedCall('tool')
  refuseOthers(params, CALL_MEMBERS, 'tool')
  const { name, arguments: values = {}, _meta: meta = {} } = params
  if (typeof name !== 'string' || !isRecord(values) || !isRecord(meta)) throw malformedCall('tool')
  return { name, values }
}

/** Returns the entry of what the caller may call, empty for `true`. */
export function allowed<Entry extends { readonly permission?: string }>(
  what: Extract<Denial, { code: 'call_refused' }>['what'],
  entry: true | Entry | undefined,
  isPermitted: IsPermitted,
): Partial<Entry> {
  if (entry === undefined) throw new Denied({ code: 'call_refused', what })
  if (entry === true) return {}
  const { permission } = entry
  if (permission !== undefined && !isPermitted(permission))
    throw new Denied({ code: 'permission_missing', permission })
  return entry
}

/** A tool without a schema takes no arguments. `at`: the JSON Pointer of `values` in the body. */
export function findingsInArguments(
  tool: { readonly arguments?: McpTool['arguments'] | undefined },
  values: JsonObject,
  at: string,
): readonly InputError[] {
  if (tool.arguments !== undefined) return findingsOf('body', tool.arguments, values, at)
  if (Object.keys(values).length === 0) return []
  return [{ in: 'body', path: at, message: 'This tool takes no arguments' }]
}

export function refuse(errors: readonly InputError[]): void {
  if (errors.length > 0) throw new Denied({ code: 'invalid_input', errors })
}
