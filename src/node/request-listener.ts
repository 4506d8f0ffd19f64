/** Connects a gateway to Node's HTTP server. */

import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as immediate } from 'node:timers/promises'
import type { Gateway } from '../gateway/create-gateway.ts'
import { problemOf } from '../middleware/problem-handler.ts'
import { problemResponse } from '../problems/problem.ts'
import type { BackgroundWork } from './background-work.ts'
import { IncomingRequest } from './incoming-request.ts'
import { OriginResponse } from './origin-response.ts'

/** After a response, a client may send the rest of its request for this long. */
const REST_MS = 500

/** What `c.env` is for a request. */
export interface NodeBindings {
  readonly incoming: IncomingMessage
}

/**
 * Creates the listener of a server. A response that breaks off ends the connection. A request that is
 * not readable is refused with 400 before the gateway, and without an audit event.
 */
export function createRequestListener(
  gateway: Pick<Gateway, 'fetch'>,
  { context }: BackgroundWork,
): RequestListener {
  async function respond(request: IncomingRequest, incoming: IncomingMessage): Promise<Response> {
    const bindings: NodeBindings = { incoming }
    return gateway.fetch(request as unknown as Request, bindings, context)
  }

  return function listener(incoming, outgoing) {
    let request: IncomingRequest
    try {
      request = new IncomingRequest(incoming)
    } catch (error) {
      write(refusal(error), outgoing)
      return
    }
    const { socket } = incoming
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) request.gone()
      else if (!incoming.complete) setTimeout(endUnless, REST_MS, incoming, socket)
    })
    respond(request, incoming)
      .catch(refusal)
      .then((response) => write(response, outgoing))
  }
}

function endUnless(incoming: IncomingMessage, socket: Socket): void {
  if (!incoming.complete) socket.destroySoon()
}

const refusal = (error: unknown): Response => problemResponse(problemOf(error as Error))

function write(response: Response, outgoing: ServerResponse): void {
  if (outgoing.destroyed) response.body?.cancel().catch(() => {})
  else if (response instanceof OriginResponse) response.writeTo(outgoing)
  else writeStream(response, outgoing).catch(() => outgoing.destroy())
}

/** Writes a response no faster than the client reads it. A body of one chunk gets its length. */
async function writeStream({ status, headers, body }: Response, outgoing: ServerResponse) {
  const fields = [...headers].flat()
  const reader = body?.getReader()
  const first = await reader?.read()
  if (reader === undefined || first?.done !== false) {
    outgoing.writeHead(status, fields).end()
    return
  }
  const rest = reader.read()
  const second = await Promise.race([rest, immediate(undefined)])
  if (second?.done) {
    if (!headers.has('Content-Length')) fields.push('content-length', String(first.value.length))
    outgoing.writeHead(status, fields).end(first.value)
    return
  }
  const left = new AbortController()
  outgoing.once('close', () => {
    left.abort()
    reader.cancel().catch(() => {})
  })
  outgoing.writeHead(status, fields)
  outgoing.write(first.value)
  for (let chunk = await rest; !chunk.done; chunk = await reader.read()) {
    if (!outgoing.write(chunk.value)) await once(outgoing, 'drain', { signal: left.signal })
  }
  outgoing.end()
}
