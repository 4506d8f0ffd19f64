/** Leaves in the lists of an MCP server only what the caller may use. */
import { isRecord, type JsonObject } from '../../inspection/json-rpc.ts'
import type { Target } from './access.ts'

export interface ListTerms {
  /** Whether a list may show a tool, a prompt or a resource to the caller. */
  readonly isVisible: (what: Target['what'], name: string) => boolean
  /** Whether the definition of a tool is the approved one. Called for visible tools only. */
  readonly isApproved: (name: string, tool: object) => boolean | Promise<boolean>
}

const LISTS = [
  { member: 'tools', what: 'tool', key: 'name' },
  { member: 'prompts', what: 'prompt', key: 'name' },
  { member: 'resources', what: 'resource', key: 'uri' },
  { member: 'resourceTemplates', what: 'template', key: 'uriTemplate' },
] as const

/** Returns the lists of a result as the caller may see them. Undefined if it has none. */
export async function filteredLists(
  result: JsonObject,
  terms: ListTerms,
): Promise<JsonObject | undefined> {
  const lists = LISTS.filter(({ member }) => Object.hasOwn(result, member))
  if (lists.length === 0) return undefined
  const filtered: Record<string, unknown> = {}
  for (const { member, what, key } of lists)
    filtered[member] = await visibleItems(result[member], what, key, terms)
  return filtered
}

async function visibleItems(
  items: unknown,
  what: Target['what'],
  key: string,
  { isVisible, isApproved }: ListTerms,
): Promise<unknown[]> {
  if (!Array.isArray(items)) return []
  const visible: unknown[] = []
  for (const item of items) {
    if (!isRecord(item)) continue
    const name = item[key]
    if (typeof name !== 'string' || !isVisible(what, name)) continue
    if (what === 'tool' && !(await isApproved(name, item))) continue
    visible.push(item)
  }
  return visible
}
