/** Guards the responses of an MCP server. */
import type { Context, MiddlewareHandler } from 'hono'
import type { Authorizer } from '../../access/permissions.ts'
import { Denied, type ProblemError, Unavailable } from '../../errors.ts'
import { boundedText } from '../../http/bounded-text.ts'
import { replaceBody } from '../../http/replaced-response.ts'
import { writeHeaders } from '../../http/response-headers.ts'
import { isRecord, type JsonObject } from '../../inspection/json-rpc.ts'
import { DeadlineExceeded, withDeadline } from '../../isolate/timers.ts'
import { callerOf, observe, requestIdOf } from '../../middleware/context.ts'
import { createMiddleware } from '../../middleware/create-middleware.ts'
import { permittedTo } from '../../middleware/inspect.ts'
import type { Mode } from '../../validators/mode.ts'
import type { McpGuard } from './access.ts'
import type { Binding } from './binding.ts'
import { EventTooLarge, eventText } from './event-stream.ts'
import { createEventGuard, guardedStream } from './guarded-stream.ts'
import { SERVER_ERROR } from './json-rpc-error.ts'
import { guardedMessage, MessageRefused, type MessageTerms } from './server-messages.ts'
import { type McpEnvironment, requestIdIn } from './stages.ts'
import { TOOL_APPROVALS } from './tool-approvals.ts'
import { definitionHash } from './tool-definition.ts'

export interface McpResponseOptions {
  readonly guard: McpGuard
  readonly binding: Binding
  readonly authorizer: Authorizer
  readonly changed: Set<string>
  /** The path of the server. */
  readonly server: string
  /** Whether changed definitions are only observed. */
  readonly definitions: Mode
  readonly maxMessageBytes: number
  /** Versions of the protocol that the server may negotiate. */
  readonly versions: ReadonlySet<string>
  /** Called with the versions of an answer to `server/discover` that the client may use. */
  readonly discovered: (versions: readonly string[]) => void
}

const LIST = /^(?:tools|prompts|resources(?:\/templates)?)\/list$/
const EVENT_STREAM = /^text\/event-stream[ \t]*(?:;|$)/i
const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i
const SESSION = 'Mcp-Session-Id'
/** For the whole answer to a list. */
const LIST_TIMEOUT_MS = 15_000
/**
 * How long the head of a stream waits for its first event, so that a server which sends no messages
 * gets an error response. The stream of a GET has usually no event at first.
 */
const HEAD_MS = { POST: 1_000, GET: 50 } as const
const NOT_A_MESSAGE = 'The MCP server sent an event that is not one JSON-RPC message.'

/**
 * Guards the response of the server: lists show only what the caller may use, and the identifiers of
 * sessions, requests and events are bound to the caller. A list is read as a whole. Any other stream
 * is guarded event by event. If it must end before its request was answered, its last event is an error
 * for this request, so that the client does not wait for the answer.
 *
 * An error response is guarded too. What cannot be read has no body then, and keeps its status.
 *
 * Throws `Unavailable` (502) for a list that cannot be read, for a stream that begins with something
 * else than a message, and for a version of the protocol that the route does not accept.
 */
export function mcpResponse(options: McpResponseOptions): MiddlewareHandler {
  const { guard, binding, authorizer, changed, server, definitions } = options
  const { maxMessageBytes, versions, discovered } = options

  /** Throws for an answer to `initialize` after which the gateway would refuse every request. */
  function checkVersion({ result }: JsonObject): void {
    const version = isRecord(result) ? result.protocolVersion : undefined
    if (typeof version === 'string' && !versions.has(version))
      throw new Unavailable('origin', 'malformed', { detail: negotiated(version) })
  }

  function messageTerms(
    c: Context<McpEnvironment>,
    owner: readonly string[],
  ): Omit<MessageTerms, 'answered'> {
    const permitted = permittedTo(c, authorizer)
    const isPermitted = (permission: string) => callerOf(c, 'mcp') !== null && permitted(permission)
    return {
      isVisible: (what, name) => guard.isVisible(what, name, isPermitted),
      bindRequest: (id) => binding.bind('request', owner, id),
      async isApproved(name, tool) {
        const approved = guard.tool(name)?.definition
        if (approved === undefined) return true
        const hash = await definitionHash(tool)
        const isApproved =
          hash === approved ||
          (await TOOL_APPROVALS.of(authorizer)?.isApproved({
            server,
            name,
            hash,
            definition: tool,
          })) === true
        if (isApproved) {
          changed.delete(name)
          return true
        }
        if (definitions === 'enforce') changed.add(name)
        observe(c, `tool_changed:${name}:${hash}`)
        return definitions === 'observe'
      },
    }
  }

  return createMiddleware<McpEnvironment>(async function mcpResponse(c, next) {
    await next()
    const owner = c.get('portcullis.mcpOwner')
    const { res: response } = c
    const { headers, status } = response
    if (owner === undefined) return
    const session = headers.get(SESSION)
    if (session !== null) {
      const bound = await binding.bind('session', owner.slice(0, -1), session)
      writeHeaders(c, (fields) => fields.set(SESSION, bound))
      // Requests of the server in this stream belong to the new session.
      if (owner.at(-1) === '') c.set('portcullis.mcpOwner', [...owner.slice(0, -1), session])
    }
    // A problem of the gateway itself.
    if (c.error !== undefined) return
    const isError = status < 200 || status > 299
    const received = c.get('portcullis.mcpMessage')
    const call = received instanceof Denied ? undefined : received?.call
    const isInitialize = call?.method === 'initialize'
    const isDiscovery = call?.method === 'server/discover'
    const isList = call !== undefined && LIST.test(call.method)
    const type = headers.get('Content-Type') ?? ''
    const isStream = EVENT_STREAM.test(type)
    const isWhole = isList || ((isInitialize || isDiscovery) && !isError && JSON_TYPE.test(type))
    if (!isWhole && !isStream) return
    // Not before: on Node, a body that nothing reads passes without a web stream.
    const { body } = c.res
    if (body === null) return
    let pending =
      received === undefined || received instanceof Denied
        ? undefined
        : requestIdIn(received.message)
    const endOf = () => c.get('portcullis.openStream')?.ended
    const { signal } = c.req.raw
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
    // A stream with a reader is locked: only its reader can cancel it.
    const leave = (): void => void (reader ?? body).cancel().catch(() => {})
    try {
      if ((headers.get('Content-Encoding') ?? 'identity') !== 'identity') throw new TypeError(type)
      const terms: MessageTerms = {
        ...messageTerms(c, c.get('portcullis.mcpOwner') ?? owner),
        ...(isDiscovery && { versions, discovered }),
        answered(message) {
          if (isInitialize) checkVersion(message)
          if (message.id === pending) pending = undefined
        },
      }
      const events = {
        maxMessageBytes,
        message: (text: string) => guardedMessage(text, terms),
        bindEvent: (id: string) => binding.bind('event', c.get('portcullis.mcpOwner') ?? owner, id),
      }
      if (!isWhole) {
        const stream = await guardedStream(body, {
          guard: createEventGuard(events),
          headMs: c.req.method === 'GET' ? HEAD_MS.GET : HEAD_MS.POST,
          lastEvent(cause) {
            const end = endOf()
            const isMessage = cause instanceof MessageRefused || cause instanceof EventTooLarge
            if (pending === undefined) return end === undefined ? undefined : ''
            if (end === undefined && !isMessage) return undefined
            return errorEvent(pending, end ?? refusedMessage(cause), requestIdOf(c))
          },
        })
        replaceBody(c, stream)
        return
      }
      if (!isStream && !JSON_TYPE.test(type)) throw new TypeError(type)
      reader = body.getReader()
      signal.addEventListener('abort', leave)
      if (signal.aborted) leave()
      const chunks = chunksOf(reader)
      const whole = isStream
        ? wholeList(chunks, createEventGuard(events), maxMessageBytes)
        : boundedText(chunks, maxMessageBytes).then(events.message)
      replaceBody(c, (await withDeadline(whole, LIST_TIMEOUT_MS)) ?? '')
    } catch (cause) {
      leave()
      const end = endOf()
      if (end !== undefined) throw end
      // The status of an error is for the client: 404 says that the session has ended.
      if (isError) {
        replaceBody(c, '')
        return writeHeaders(c, (fields) => fields.delete('Content-Type'))
      }
      if (cause instanceof Denied || cause instanceof Unavailable) throw cause
      if (cause instanceof DeadlineExceeded) throw new Unavailable('origin', 'timeout', { cause })
      throw refusedMessage(cause)
    } finally {
      signal.removeEventListener('abort', leave)
    }
  })
}

const negotiated = (version: string) =>
  `The MCP server negotiated ${/^[\w.-]{1,32}$/.test(version) ? version : 'a version'}, which the ` +
  'setting `versions` of this route does not list.'

function refusedMessage(cause: unknown): Unavailable {
  return new Unavailable('origin', 'malformed', { cause, detail: NOT_A_MESSAGE })
}

/** Returns the event of an error for a request of the client. */
function errorEvent(id: string | number, { problem }: ProblemError, request: string): string {
  const { code, detail } = problem
  const error = { code: SERVER_ERROR, message: detail, data: { code, requestId: request } }
  const data = JSON.stringify({ jsonrpc: '2.0', id, error })
  return eventText({ type: 'message', data, id: undefined, retry: undefined })
}

/** Unlike an iterator of the stream, leaves the reader to the caller, which can cancel it at any time. */
async function* chunksOf(reader: ReadableStreamDefaultReader<Uint8Array>) {
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    yield value
  }
}

/** Returns the guarded events of a stream that answers one request. */
async function wholeList(
  body: AsyncIterable<Uint8Array>,
  guard: (bytes: Uint8Array) => Promise<string>,
  maxBytes: number,
): Promise<string> {
  let text = ''
  let length = 0
  for await (const chunk of body) {
    length += chunk.byteLength
    if (length > maxBytes) throw new RangeError('length')
    text += await guard(chunk)
  }
  return text
}
