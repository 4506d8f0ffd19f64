/** Decides which parts of an MCP server a caller may use. */
import { Denied } from '../../errors.ts'
import {
  allowed,
  findingsInArguments,
  type IsPermitted,
  refuse,
} from '../../inspection/call-guard.ts'
import type { JsonRpcMethod } from '../../inspection/definition.ts'
import {
  isRecord,
  type JsonObject,
  type JsonRpcCall,
  malformedCall,
  refuseOthers,
} from '../../inspection/json-rpc.ts'
import { findingsOf } from '../../validators/findings.ts'
import type { McpAccess, McpDefinition, McpPromptAccess, McpToolAccess } from './definition.ts'
import { createResourceTable, type NamedResource } from './resource-table.ts'
import { METHODS_WITH_SESSIONS, STANDARD_METHODS } from './schema.ts'

/** What a call uses: a tool, a prompt by its name, or a resource by its URI or a template of URIs. */
export type Target =
  | { readonly what: 'tool' | 'prompt'; readonly name: string; readonly values: JsonObject }
  | { readonly what: NamedResource; readonly name: string }

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
export function readTargets({ method, params }: JsonRpcCall): readonly Target[] {
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
  const { name } = params
  // Some clients write absent members as null.
  const values = params.arguments ?? {}
  const meta = params[META] ?? {}
  if (typeof name !== 'string' || !isRecord(values) || !isRecord(meta))
    throw malformedCall('target')
  return { what, name, values }
}

const RESOURCE_MEMBERS: ReadonlySet<string> = new Set(['type', 'uri'])
const PROMPT_MEMBERS: ReadonlySet<string> = new Set(['type', 'name', 'title'])

function referred(ref: unknown): Target {
  if (!isRecord(ref)) throw malformedCall('target')
  const isResource = ref.type === 'ref/resource'
  refuseOthers(ref, isResource ? RESOURCE_MEMBERS : PROMPT_MEMBERS, 'target')
  if (isResource) return resource(ref.uri, 'template')
  if (ref.type !== 'ref/prompt' || typeof ref.name !== 'string') throw malformedCall('target')
  // The arguments are not complete yet.
  return { what: 'prompt', name: ref.name, values: {} }
}

function subscribed(notifications: unknown): readonly Target[] {
  if (!isRecord(notifications)) throw malformedCall('target')
  const { resourceSubscriptions: uris = [] } = notifications
  if (!Array.isArray(uris)) throw malformedCall('target')
  return uris.map((uri) => resource(uri))
}

function resource(uri: unknown, what: NamedResource = 'resource'): Target {
  if (typeof uri !== 'string') throw malformedCall('target')
  return { what, name: uri }
}

export type McpGuard = ReturnType<typeof createMcpGuard>

export function createMcpGuard(definition: McpDefinition) {
  const named = new Map(Object.entries(definition.methods ?? {}))
  const methods = new Map<string, true | JsonRpcMethod>([
    ...STANDARD_METHODS.map((method) => [method, true] as const),
    ...named,
  ])
  const entries = {
    tool: entriesOf<McpToolAccess>(definition.tools),
    prompt: entriesOf<McpPromptAccess>(definition.prompts),
  }
  const resources = createResourceTable(definition.resources)

  /** Throws `Denied` unless the caller may use the resource, or complete the names of the template. */
  function guardResource(what: NamedResource, uri: string, isPermitted: IsPermitted): void {
    if (!resources.isNormal(what, uri)) throw new Denied({ code: 'call_refused', what: 'spelling' })
    const found =
      what === 'template' ? resources.entriesOfNames(uri) : resources.entriesOf(what, uri)
    if (found.length === 0) throw new Denied({ code: 'call_refused', what: 'resource' })
    for (const entry of found) allowed('resource', entry, isPermitted)
  }

  return {
    /** Whether the definition names the method, or the revision of the request has it. */
    hasMethod: (method: string, usesSessions: boolean): boolean =>
      named.has(method) ||
      (methods.has(method) && (usesSessions || !METHODS_WITH_SESSIONS.has(method))),
    /** Returns the entry of a tool; undefined if the definition hides it. */
    tool: (name: string): McpToolAccess | undefined => entries.tool(name),
    /** Whether a list may show a tool, a prompt, a resource or a template to the caller. */
    isVisible(what: Target['what'], name: string, isPermitted: IsPermitted): boolean {
      const isAllowed = ({ permission }: McpAccess) =>
        permission === undefined || isPermitted(permission)
      if (what === 'resource' || what === 'template') {
        const found = resources.entriesOf(what, name)
        return found.length > 0 && found.every(isAllowed)
      }
      const entry = entries[what](name)
      return entry !== undefined && isAllowed(entry)
    },
    /**
     * Throws `Denied` for a call that the caller may not make: `call_refused`, `permission_missing` or
     * `invalid_input`. Permissions are checked before schemas. Does NOT check relations.
     */
    guard(
      { method, params, pointer }: JsonRpcCall,
      targets: readonly Target[],
      isPermitted: IsPermitted,
    ): void {
      const { params: schema } = allowed('method', methods.get(method), isPermitted)
      if (schema !== undefined) refuse(findingsOf('body', schema, params, `${pointer}/params`))
      for (const target of targets) {
        if (!('values' in target)) {
          guardResource(target.what, target.name, isPermitted)
          continue
        }
        const entry = allowed(target.what, entries[target.what](target.name), isPermitted)
        if (method === 'completion/complete') continue
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
  const others = known.get(OTHERS)
  if (others === undefined) return (name) => known.get(name)
  const folded = new Set([...known.keys()].map(foldedName))
  const isSpelling = (name: string) => name.length > MAX_NAME_CHARS || folded.has(foldedName(name))
  return (name) => known.get(name) ?? (isSpelling(name) ? undefined : others)
}

/** A longer name could be another spelling of each listed one, and it takes too long to compare. */
const MAX_NAME_CHARS = 1_024

/** Returns a text that is equal for names that some servers read as equal: its letters and digits in one case. */
function foldedName(name: string): string {
  const plain = name.normalize('NFKD').replace(/[^\p{L}\p{N}]/gu, '')
  return plain === '' ? name : plain.toUpperCase().toLowerCase()
}

const whole = <Entry>(entry: true | Entry): Entry => (entry === true ? ({} as Entry) : entry)
