/** Routes of the server: authentication, parsing, execution and the format of the response. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { TokenGuard } from './auth.ts'
import { type Command, isStreaming } from './command.ts'
import type { Connection, WhenGone } from './connection.ts'
import { streamEvents } from './event-stream.ts'
import { Refusal } from './refusal.ts'
import { type Answer, encodeOne, encodeSeveral, errorJson, type Format, formatOf } from './reply.ts'
import {
  bodyOf,
  commandOf,
  commandsOf,
  methodOf,
  pathCommandOf,
  queryTokenOf,
  type Target,
  targetOf,
  wantsEvents,
} from './request.ts'

/** The dependencies of the routes, created once per server. */
export interface Services {
  readonly connection: Connection
  readonly requireToken: TokenGuard
  /** Returns a value for `Upstash-Sync-Token`, different for each call. */
  readonly nextSyncToken: () => string
  /** Gets the body of each request before its commands run. False: the connection is closed without a response. */
  readonly accepts: (body: Buffer) => boolean
}

/** Responds to one request. Never throws. */
export async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  services: Services,
): Promise<void> {
  try {
    const answer = await route(request, response, services)
    if (answer !== undefined) send(response, services, answer)
  } catch (error) {
    if (response.headersSent) {
      response.destroy()
      return
    }
    send(response, services, answerToError(error))
  }
}

function answerToError(error: unknown): Answer {
  const { status, message } =
    error instanceof Refusal ? error : { status: 500, message: 'ERR internal error' }
  return { status, type: 'application/json', body: errorJson(message) }
}

/** A request whose body has been read. */
export interface ReadRequest {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/**
 * Returns the response to a request that another server has read, such as a test server that records its requests.
 * Streams no events. Never throws.
 */
export async function answerRead(
  { url, headers, body }: ReadRequest,
  { connection, requireToken }: Pick<Services, 'connection' | 'requireToken'>,
): Promise<Answer> {
  try {
    const target = targetOf(url)
    requireToken(headers.authorization, queryTokenOf(target))
    return await run(target, body, formatOf(headers), connection, () => {})
  } catch (error) {
    return answerToError(error)
  }
}

/** Returns the response, or undefined if events are streamed instead. */
async function route(
  request: IncomingMessage,
  response: ServerResponse,
  { connection, requireToken, nextSyncToken, accepts }: Services,
): Promise<Answer | undefined> {
  const target = targetOf(request.url ?? '/')
  requireToken(request.headers.authorization, queryTokenOf(target))
  const method = methodOf(request)
  const format = formatOf(request.headers)
  const body = method === 'POST' || method === 'PUT' ? await bodyOf(request) : Buffer.alloc(0)
  if (!accepts(body)) {
    response.destroy()
    return undefined
  }
  const whenGone: WhenGone = (listener) =>
    response.closed ? listener() : response.once('close', listener)

  if (wantsEvents(request) && !SEVERAL.has(target.path)) {
    const command = oneCommand(target, body)
    if (isStreaming(command)) {
      const headers = { 'upstash-sync-token': nextSyncToken() }
      await streamEvents(command, connection, whenGone, response, headers)
      return undefined
    }
  }
  return run(target, body, format, connection, whenGone)
}

/** Paths of requests with several commands. */
const SEVERAL: ReadonlySet<string> = new Set(['/pipeline', '/multi-exec'])

const oneCommand = (target: Target, body: Buffer): Command =>
  target.path === '/' ? commandOf(body) : pathCommandOf(target, body)

/** Runs the commands of a request. */
async function run(
  target: Target,
  body: Buffer,
  format: Format,
  connection: Connection,
  whenGone: WhenGone,
): Promise<Answer> {
  switch (target.path) {
    case '/pipeline':
      return encodeSeveral(await connection.run(commandsOf(body), whenGone), format)
    case '/multi-exec':
      return encodeSeveral(
        await connection.transact(commandsOf(body)),
        format === 'resp2' ? 'text' : format,
      )
  }
  const [reply = null] = await connection.run([oneCommand(target, body)], whenGone)
  return encodeOne(reply, format)
}

function send(
  response: ServerResponse,
  { nextSyncToken }: Services,
  { status, type, body }: Answer,
): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'upstash-sync-token': nextSyncToken(),
  })
  response.end(body)
}
