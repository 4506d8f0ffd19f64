/** Refusals of messages of MCP clients, as JSON-RPC errors that a model can read. */
import type { Context, MiddlewareHandler } from 'hono'
import { Denied } from '../../errors.ts'
import { coversHost, hostOf } from '../../http/host.ts'
import { shadows } from '../../http/path-pattern.ts'
import { replaceBody } from '../../http/replaced-response.ts'
import { writeHeaders } from '../../http/response-headers.ts'
import { isRecord, type JsonObject } from '../../inspection/json-rpc.ts'
import type { RouteVariables } from '../../middleware/context.ts'
import { createMiddleware } from '../../middleware/create-middleware.ts'
import { receivedHeaders } from '../../middleware/request-headers.ts'
import type { PolicyRoute } from '../../policy/policy.ts'
import type { Denial } from '../../problems/reasons.ts'
import { usesSessions, VERSION_HEADER } from './request-headers.ts'
import { type McpEnvironment, UNKNOWN_METHOD } from './stages.ts'

/** Codes of JSON-RPC 2.0, section 5.1. */
const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600
const METHOD_NOT_FOUND = -32_601
const INVALID_PARAMS = -32_602
/** Of JSON-RPC, for errors that a server defines. */
export const SERVER_ERROR = -32_000
/** Codes of MCP, revision 2026-07-28. */
const HEADER_MISMATCH = -32_020
const UNSUPPORTED_VERSION = -32_022

/** Members of a problem document that `error.data` has too. */
const DATA = ['code', 'requestId', 'errors', 'limit', 'plan', 'renewsAt']
/** Findings that the text of an error names. All are in `error.data`. */
const MAX_NAMED_FINDINGS = 5

export interface JsonRpcErrorOptions {
  /** All routes of the policy, in its order. */
  readonly routes: readonly PolicyRoute[]
  /** Versions of the protocol that a client may choose, by the POST route of the server. */
  readonly negotiable: ReadonlyMap<
    RouteVariables['portcullis.route'] | undefined,
    () => readonly string[]
  >
}

/**
 * Answers refused POST requests to MCP servers with a JSON-RPC error: the same status and headers, and
 * the `id` of the request if it is known. Clients show its message to the model. A request that is refused
 * before its route is matched gets the form of the route that would match it.
 */
export function jsonRpcErrors({ routes, negotiable }: JsonRpcErrorOptions): MiddlewareHandler {
  const posts = routes.filter(({ method }) => method === 'POST')
  const paths = new Set(posts.filter((route) => negotiable.has(route)).map(({ path }) => path))
  const findRoute = (host: string, path: string) =>
    posts.find((route) => coversHost(route.host, host) && shadows(route.path, path))

  return createMiddleware<McpEnvironment & { Variables: Partial<RouteVariables> }>(
    async function jsonRpcErrors(c, next) {
      await next()
      if (c.req.method !== 'POST' || !paths.has(c.req.path)) return
      const route = c.get('portcullis.route') ?? findRoute(hostOf(c.req.url), c.req.path)
      const versions = negotiable.get(route)
      if (versions !== undefined) await answerAsError(c, versions)
    },
  )
}

async function answerAsError(
  c: Context<McpEnvironment>,
  negotiable: () => readonly string[],
): Promise<void> {
  const { error } = c
  if (c.res.headers.get('Content-Type') !== 'application/problem+json') return
  if (error === undefined) return
  const problem: unknown = await c.res.json()
  if (!isRecord(problem)) return
  const denial = error instanceof Denied ? error.denial : undefined
  const code = selectCode(denial, usesSessions(receivedHeaders(c)))
  const retryAfter = c.res.headers.get('Retry-After')
  const data = {
    ...Object.fromEntries(Object.entries(problem).filter(([name]) => DATA.includes(name))),
    ...(retryAfter !== null && { retryAfterSeconds: Number(retryAfter) }),
    ...(code === UNSUPPORTED_VERSION && {
      supported: negotiable(),
      requested: receivedHeaders(c).get(VERSION_HEADER),
    }),
  }
  const id = c.get('portcullis.mcpId')
  const message = describeError(problem, denial, retryAfter)
  replaceBody(
    c,
    JSON.stringify({
      jsonrpc: '2.0',
      ...(id !== undefined && { id }),
      error: { code, message, data },
    }),
  )
  writeHeaders(c, (headers) => headers.set('Content-Type', 'application/json'))
}

/** What a problem document does not say. The methods and headers of a request are its own. */
const MESSAGES: Readonly<Record<string, string>> = {
  [UNKNOWN_METHOD]: 'The method is not available here.',
  json_rpc_batch: 'The body must be one JSON-RPC message, not a batch.',
  json_rpc_meta: 'params._meta must state io.modelcontextprotocol/protocolVersion.',
  json_rpc_header_method: 'The header Mcp-Method does not match the method of the body.',
  json_rpc_header_name: 'The header Mcp-Name does not match the params of the body.',
  json_rpc_header_version: 'The header MCP-Protocol-Version does not match params._meta.',
  json_rpc_target: 'The params are not those of the method.',
  body_syntax: 'The body is not valid JSON.',
}

/** Returns the text for the model: what is wrong, where, and when a repetition may succeed. */
function describeError(
  { detail, errors }: JsonObject,
  denial: Denial | undefined,
  retryAfter: string | null,
): string {
  const check = denial !== undefined && 'check' in denial ? denial.check : undefined
  const cause = (check === undefined ? undefined : MESSAGES[check]) ?? String(detail)
  const findings = Array.isArray(errors) ? errors.filter(isRecord) : []
  const named = findings
    .slice(0, MAX_NAMED_FINDINGS)
    .map(({ path, message }) => ` ${String(path)}: ${String(message)}.`)
  const later = retryAfter === null ? '' : ` Try again in ${retryAfter} seconds.`
  return `${cause}${named.join('')}${later}`
}

function selectCode(denial: Denial | undefined, usesSessions: boolean): number {
  switch (denial?.code) {
    case 'invalid_input':
    case 'call_refused':
      return INVALID_PARAMS
    case 'not_found':
      return denial.check === UNKNOWN_METHOD ? METHOD_NOT_FOUND : SERVER_ERROR
    case 'malformed_request':
      return codeOfCheck(denial.check, usesSessions)
    case 'payload_too_large':
    case 'unsupported_media_type':
      return INVALID_REQUEST
    default:
      return SERVER_ERROR
  }
}

function codeOfCheck(check: string, usesSessions: boolean): number {
  switch (check) {
    case UNKNOWN_METHOD:
      return METHOD_NOT_FOUND
    case 'mcp_version':
      return UNSUPPORTED_VERSION
    case 'json_rpc_target':
    case 'json_rpc_params':
    case 'json_rpc_meta':
      return INVALID_PARAMS
    case 'body_syntax':
    case 'body_encoding':
      return PARSE_ERROR
  }
  return check.startsWith('json_rpc_header_') && !usesSessions ? HEADER_MISMATCH : INVALID_REQUEST
}
