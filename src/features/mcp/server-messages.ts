/** Guards the messages of an MCP server before its client receives them. */
import { parseStrictJson } from '../../http/strict-json.ts'
import { isRecord, type JsonObject } from '../../inspection/json-rpc.ts'
import type { Target } from './access.ts'

/** Nested containers in a message: schemas of tools are nested deeply. */
const MAX_DEPTH = 100
/** A client's answer has the bound id of its request, and ids have at most 256 characters. */
const MAX_ID_CHARS = 200

/** The message cannot be read in one way only, or a client could not answer it. */
export class MessageRefused extends Error {
  override readonly name = 'MessageRefused'
}

export interface MessageTerms extends ListTerms {
  /** Binds the id of a request of the server, as JSON. */
  readonly bindRequest: (id: string) => Promise<string>
  /** Called for a response of the server before it passes. May throw. */
  readonly answered: (message: JsonObject) => void
  /** Only for answers to `server/discover`: the versions of the protocol that the client may use. */
  readonly versions?: ReadonlySet<string>
  readonly discovered?: (versions: readonly string[]) => void
}

/**
 * Returns the text of a message as the client may receive it:
 *
 * - Lists (`tools`, `prompts`, `resources` and `resourceTemplates` of a result) have only items that
 *   the caller may use. An item without a name is left out.
 * - The versions of an answer to `server/discover` are those that the route accepts.
 * - A notification that a resource was updated is left out (undefined) unless the caller may use the
 *   resource: the server may send it for a resource below the one of a subscription.
 * - The id of a request of the server is bound to the caller, so that only an answer to it passes.
 *   The same applies to `notifications/cancelled`, which names such a request.
 *
 * Any other message is returned unchanged. Throws {@link MessageRefused} for text that is not a JSON
 * object, has a name twice, is a request and a response, or is a request with an id that cannot be bound.
 */
export async function guardedMessage(
  text: string,
  terms: MessageTerms,
): Promise<string | undefined> {
  const message = parsed(text)
  // Some serializers write absent members as null. A client must not find a list in a request.
  if (isStated(message, 'method')) {
    if (isStated(message, 'result')) throw new MessageRefused('ambiguous')
    return isUpdateOfHidden(message, terms) ? undefined : guardedRequest(text, message, terms)
  }
  terms.answered(message)
  const { result } = message
  if (!isRecord(result)) return text
  const lists = await filteredLists(result, terms)
  const negotiable = negotiableVersions(result, terms)
  if (lists === undefined && negotiable === undefined) return text
  return JSON.stringify({ ...message, result: { ...result, ...negotiable, ...lists } })
}

function negotiableVersions(
  { supportedVersions }: JsonObject,
  { versions, discovered }: MessageTerms,
): { readonly supportedVersions: readonly string[] } | undefined {
  if (versions === undefined || !Array.isArray(supportedVersions)) return undefined
  const negotiable = supportedVersions.filter((version) => versions.has(version))
  discovered?.(negotiable)
  return { supportedVersions: negotiable }
}

const isStated = (message: JsonObject, name: string): boolean =>
  Object.hasOwn(message, name) && message[name] !== null

function isUpdateOfHidden({ method, params }: JsonObject, { isVisible }: MessageTerms): boolean {
  if (method !== 'notifications/resources/updated') return false
  const uri = isRecord(params) ? params.uri : undefined
  return typeof uri !== 'string' || !isVisible('resource', uri)
}

async function guardedRequest(
  text: string,
  message: JsonObject,
  { bindRequest }: MessageTerms,
): Promise<string> {
  const { method, params } = message
  if (Object.hasOwn(message, 'id'))
    return JSON.stringify({ ...message, id: await bindRequest(idText(message.id)) })
  if (method !== 'notifications/cancelled' || !isRecord(params)) return text
  const requestId = await bindRequest(idText(params.requestId))
  return JSON.stringify({ ...message, params: { ...params, requestId } })
}

function idText(id: unknown): string {
  const isValid = typeof id === 'string' || Number.isSafeInteger(id)
  const text = JSON.stringify(id)
  if (!isValid || text.length > MAX_ID_CHARS) throw new MessageRefused('id')
  return text
}

function parsed(text: string): JsonObject {
  let message: unknown
  try {
    message = parseStrictJson(text, { maxDepth: MAX_DEPTH })
  } catch {
    throw new MessageRefused('json')
  }
  if (!isRecord(message)) throw new MessageRefused('object')
  return message
}

interface ListTerms {
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
async function filteredLists(
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
