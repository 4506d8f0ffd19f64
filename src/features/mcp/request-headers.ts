/** Headers of MCP's streamable HTTP transport that repeat parts of the body. */
import { isRecord, type JsonObject, malformedCall } from '../../inspection/json-rpc.ts'
import type { Target } from './access.ts'

type Headers = ReadonlyMap<string, string>

/** The first revision without sessions. Requests carry their metadata instead. */
const WITHOUT_SESSIONS = '2026-07-28'
const VERSION_FIELD = 'io.modelcontextprotocol/protocolVersion'
const ENCODED = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/
/** The methods whose requests repeat a name. */
const NAMED: ReadonlySet<unknown> = new Set(['tools/call', 'prompts/get', 'resources/read'])

export const VERSION_HEADER = 'mcp-protocol-version'

/** Whether the revision of a request has sessions, and requests of the server. */
export function usesSessions(headers: Headers): boolean {
  return (headers.get(VERSION_HEADER) ?? '') < WITHOUT_SESSIONS
}

/**
 * Throws `Denied` (`malformed_request`) if a header differs from the body: a server, or a proxy before
 * it, could decide by one and execute the other. Requests of the revisions since 2026-07-28 must have
 * the headers, and metadata in their body; in others, those that are present must match.
 */
export function refuseOtherHeaders(
  headers: Headers,
  { method, params, id }: JsonObject,
  [target]: readonly Target[],
): void {
  const isRequired = id !== undefined && method !== undefined && !usesSessions(headers)
  const sent = headers.get('mcp-method')
  if ((sent !== undefined || isRequired) && sent !== method) throw malformedCall('header_method')
  const name = headers.get('mcp-name')
  const isNamed = NAMED.has(method)
  if (
    name !== undefined
      ? decoded(name) !== (isNamed ? target?.name : undefined)
      : isRequired && isNamed
  )
    throw malformedCall('header_name')
  const meta = isRecord(params) && isRecord(params._meta) ? params._meta[VERSION_FIELD] : undefined
  if (meta === undefined && isRequired) throw malformedCall('meta')
  if (meta !== undefined && meta !== headers.get(VERSION_HEADER))
    throw malformedCall('header_version')
}

/** Decodes `=?base64?…?=`, the form of names that are not plain ASCII. */
function decoded(value: string): string | undefined {
  const base64 = ENCODED.exec(value)?.[1]
  if (base64 === undefined) return value
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
