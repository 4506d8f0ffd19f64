/** Decides which parts of an MCP server a caller may use. */
import { allowed, findingsInArguments, type IsPermitted, refuse } from '../inspection/call-guard.ts'
import type { JsonRpcMethod } from '../inspection/definition.ts'
import {
  isRecord,
  type JsonObject,
  type JsonRpcCall,
  malformedCall,
  refuseOthers,
} from '../inspection/json-rpc.ts'
import { findingsOf } from '../validators/findings.ts'
import { STANDARD_METHODS } from '../validators/mcp.ts'
import type { McpAccess, McpDefinition, McpPromptAccess, McpToolAccess } from './definition.ts'

/** What a call uses: a tool, a prompt by its name, or a resource by its URI. */
export type Target =
  | { readonly what: 'tool' | 'prompt'; readonly name: string; readonly values: JsonObject }
  | { readonly what: 'resource'; readonly name: string }

const META = '_meta'
/** Members with answers of the user (revision 2026-07-28, multi round-trip requests). */
const ANSWERS = ['inputResponses', 'requestState']

/** Members of `params` of the methods with a target. Other spellings could be read by some servers. */
const MEMBERS: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['tools/call', new Set(['name', 'arguments', 'task', META, ...ANSWERS])],
  ['prompts/get', new Set(['name', 'arguments', META, ...ANSWERS])],
  ['resources/read', new Set(['uri', META, ...ANSWERS])],
  ['resources/subscribe', new Set(['uri', META])],
  ['resources/unsubscribe', new Set(['uri', META])],
  ['completion/complete', new Set(['ref', 'argument', 'context', META])],
  ['subscriptions/listen', new Set(['notifications', META])],
])

/**
 * Returns what a call uses; nothing for most methods. Throws `Denied` (`malformed_request`) for
 * params that do not name it, or have members that the protocol does not define.
 */
export function targetsOf({ method, params }: JsonRpcCall): readonly Target[] {
  const members = MEMBERS.get(method)
  if (members === undefined) return []
  if (!isRecord(params)) throw malformedCall('target')
  refuseOthers(params, members, 'target')
  switch (method) {
    case 'tools/call':
      return [named('tool', params)]
    case 'prompts/get':
      return [named('prompt', params)]
    case 'completion/complete':
      return [referred(params.ref)]
    case 'subscriptions/listen':
      return subscribed(params.notifications)
    default:
      return [resource(params.uri)]
  }
}

function named(what: 'tool' | 'prompt', params: JsonObject): Target {
  const { name, arguments: values = {}, [META]: meta = {} } = params
  if (typeof name !== 'string' || !isRecord(values) || !isRecord(meta))
    throw malformedCall('target')
  return { what, name, values }
}

function referred(ref: unknown): Target {
  if (!isRecord(ref)) throw malformedCall('target')
  if (ref.type === 'ref/resource') return resource(ref.uri)
  if (ref.type !== 'ref/prompt' || typeof ref.name !== 'string') throw malformedCall('target')
  // The arguments are not complete yet.
  return { what: 'prompt', name: ref.name, values: {} }
}

function subscribed(notifications: unknown): readonly Target[] {
  if (!isRecord(notifications)) throw malformedCall('target')
  const { resourceSubscriptions: uris = [] } = notifications
  if (!Array.isArray(uris)) throw malformedCall('target')
  return uris.map(resource)
}

function resource(uri: unknown): Target {
  if (typeof uri !== 'string') throw malformedCall('target')
  return { what: 'resource', name: uri }
}

export interface McpGuard {
  /** Returns the entry of a tool; undefined if the definition hides it. */
  tool(name: string): McpToolAccess | undefined
  /** Whether a list may show a tool, a prompt or a resource to the caller. */
  isVisible(what: Target['what'], name: string, isPermitted: IsPermitted): boolean
  /**
   * Throws `Denied` for a call that the caller may not make: `call_refused`, `permission_missing` or
   * `invalid_input`. Permissions are checked before schemas. Does NOT check relations.
   */
  guard(call: JsonRpcCall, targets: readonly Target[], isPermitted: IsPermitted): void
}

export function createMcpGuard(definition: McpDefinition): McpGuard {
  const methods = new Map<string, true | JsonRpcMethod>([
    ...STANDARD_METHODS.map((method) => [method, true] as const),
    ...Object.entries(definition.methods ?? {}),
  ])
  const entries = {
    tool: entriesOf<McpToolAccess>(definition.tools),
    prompt: entriesOf<McpPromptAccess>(definition.prompts),
    resource: resourcesOf(definition.resources),
  }

  return {
    tool: (name) => entries.tool(name),
    isVisible(what, name, isPermitted) {
      const entry = entries[what](name)
      if (entry === undefined) return false
      return entry.permission === undefined || isPermitted(entry.permission)
    },
    guard({ method, params, pointer }, targets, isPermitted) {
      const { params: schema } = allowed('method', methods.get(method), isPermitted)
      if (schema !== undefined) refuse(findingsOf('body', schema, params, `${pointer}/params`))
      for (const target of targets) {
        const entry = allowed(target.what, entries[target.what](target.name), isPermitted)
        if (target.what === 'resource' || method === 'completion/complete') continue
        const { arguments: schemaOfValues } = entry as McpToolAccess
        if (schemaOfValues === 'any') continue
        if (target.what === 'prompt' && schemaOfValues === undefined) continue
        const at = `${pointer}/params/arguments`
        refuse(findingsInArguments({ arguments: schemaOfValues }, target.values, at))
      }
    },
  }
}

/** The name of all others. No tool, prompt or resource has it. */
const OTHERS = '*'

type Lookup<Entry> = (name: string) => Entry | undefined

function entriesOf<Entry>(table: Readonly<Record<string, true | Entry>> = {}): Lookup<Entry> {
  // A Map, so that a name such as `constructor` does not find a property of `Object`.
  const known = new Map(Object.entries(table).map(([name, entry]) => [name, whole(entry)]))
  return (name) => known.get(name) ?? known.get(OTHERS)
}

const whole = <Entry>(entry: true | Entry): Entry => (entry === true ? ({} as Entry) : entry)

/**
 * A URI that different servers could resolve to another place: dot segments, encoded or not,
 * backslashes, white space and control characters.
 */
const AMBIGUOUS = /[\0- \x7f\\]|%2e|%2f|%5c|%25|(?:^|[/:])\.{1,2}(?:[/?#]|$)/i

function resourcesOf(table: McpDefinition['resources'] = {}): Lookup<McpAccess> {
  const exact = new Map(Object.entries(table).map(([uri, entry]) => [uri, whole(entry)]))
  const prefixes = [...exact]
    .filter(([uri]) => uri.endsWith(OTHERS))
    .map(([uri, entry]) => [uri.slice(0, -OTHERS.length), entry] as const)
    .sort(([one], [other]) => other.length - one.length)
  return (uri) => {
    const known = uri.endsWith(OTHERS) ? undefined : exact.get(uri)
    if (known !== undefined) return known
    const isAmbiguous = AMBIGUOUS.test(uri)
    return prefixes.find(
      ([prefix]) => uri.startsWith(prefix) && (prefix === '' || !isAmbiguous),
    )?.[1]
  }
}
