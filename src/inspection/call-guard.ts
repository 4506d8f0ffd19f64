/** Which methods and tools may be called, by whom, and with what. */
import type * as z from 'zod'
import { Denied } from '../errors.ts'
import { findingsOf } from '../validators/findings.ts'
import { type JsonRpcDefinition, type McpTool, TOOLS_CALL } from './definition.ts'
import { isRecord, type JsonRpcCall, malformedCall } from './json-rpc.ts'

/** Answers whether the caller has a permission. */
export type IsPermitted = (permission: string) => boolean

/** Members of the `params` of `tools/call`; `_meta` is MCP's for every request. */
const CALL_MEMBERS: ReadonlySet<string> = new Set(['name', 'arguments', '_meta'])

/**
 * Makes the guard of a route's calls. It throws `Denied`: `call_refused` for a method or a tool that is not
 * named, `permission_missing`, `input_invalid` for params and arguments that do not match their schema, and
 * `request_malformed` for a `tools/call` that is not one. Permission precedes the schema, so that findings do not
 * describe tools that the caller may not use. Names are compared exactly, in Maps: neither case nor
 * `constructor` finds anything.
 *
 * Does NOT check what a tool does with arguments that are allowed.
 */
export function createCallGuard({ methods, tools = {} }: JsonRpcDefinition) {
  const methodsByName = new Map(Object.entries(methods))
  const toolsByName = new Map(Object.entries(tools))

  function guardTool(call: JsonRpcCall, isPermitted: IsPermitted): void {
    const { name, values } = toolCallOf(call)
    const entry = toolsByName.get(name)
    if (entry === undefined) throw new Denied({ code: 'call_refused', what: 'tool' })
    const tool: McpTool = entry === true ? {} : entry
    demand(tool.permission, isPermitted)
    const at = `${call.pointer}/params/arguments`
    if (tool.arguments !== undefined) refuseUnmatched(tool.arguments, values, at)
    else if (Object.keys(values).length > 0) throw noneTaken(at)
  }

  return function guardCall(call: JsonRpcCall, isPermitted: IsPermitted): void {
    const entry = methodsByName.get(call.method)
    if (entry === undefined) throw new Denied({ code: 'call_refused', what: 'method' })
    if (entry !== true) {
      demand(entry.permission, isPermitted)
      if (entry.params !== undefined)
        refuseUnmatched(entry.params, call.params, `${call.pointer}/params`)
    }
    if (call.method === TOOLS_CALL) guardTool(call, isPermitted)
  }
}

function toolCallOf({ params }: JsonRpcCall) {
  if (!isRecord(params)) throw malformedCall('tool')
  for (const member of Object.keys(params))
    if (!CALL_MEMBERS.has(member)) throw malformedCall('tool')
  const { name, arguments: values = {}, _meta: meta = {} } = params
  if (typeof name !== 'string' || !isRecord(values) || !isRecord(meta)) throw malformedCall('tool')
  return { name, values }
}

function demand(permission: string | undefined, isPermitted: IsPermitted): void {
  if (permission !== undefined && !isPermitted(permission))
    throw new Denied({ code: 'permission_missing', permission })
}

function refuseUnmatched(schema: z.ZodType, value: unknown, at: string): void {
  const errors = findingsOf('body', schema, value, { at })
  if (errors.length > 0) throw new Denied({ code: 'input_invalid', errors })
}

function noneTaken(at: string): Denied {
  const errors = [{ in: 'body', path: at, message: 'This tool takes no arguments' }] as const
  return new Denied({ code: 'input_invalid', errors })
}
