/** Responses of an app on Node: those that the guard sends, and those that it watches while they are open. */
import type { MiddlewareHandler } from 'hono'
import type { WatchWith } from '../guard/watched-responses.ts'
import { isComplete, isSafe } from '../middleware/open-stream.ts'
import type { NodeRequest, NodeResponse } from './connect.ts'

/** Sends the response of a stage. Breaks the connection off if the app has begun another one. */
export async function send(response: Response, req: NodeRequest, res: NodeResponse): Promise<void> {
  const body = await response.text()
  if (res.headersSent || res.writableEnded || res.destroyed) {
    if (!res.writableFinished) res.destroy()
    return
  }
  res.statusCode = response.status
  response.headers.forEach((value, name) => {
    res.setHeader(name, value)
  })
  // The rest of the body would be read as the next request.
  if (req.complete === false) res.setHeader('Connection', 'close')
  res.end(req.method === 'HEAD' ? undefined : body)
}

/** The status in the audit event of a client that has left before the response began. */
const CLIENT_GONE = 499

/** Returns what the stages may read of the response that the app has sent. */
export const sentResponse = (res: NodeResponse): Response =>
  new Response(null, { status: res.headersSent ? res.statusCode : CLIENT_GONE })

/** Returns the stage that ends open responses: `resOf` returns the response of a context. */
export const watchWith =
  (resOf: (c: Parameters<MiddlewareHandler>[0]) => NodeResponse): WatchWith =>
  (watchStream) =>
    function watchResponse(c, next) {
      const stream = watchStream(c)
      const res = resOf(c)
      if (stream !== undefined) {
        onHead(res, () => {
          const type = String(res.getHeader('Content-Type') ?? '')
          const hasLength = res.getHeader('Content-Length') !== undefined
          if (isComplete(new Headers({ 'Content-Type': type })) && hasLength) return
          if (!isSafe(c.req.method)) stream.answered()
          stream.opened({ cut: () => res.destroy() })
          res.once('close', () => stream.closed())
        })
      }
      return next()
    }

/** Calls `act` after the head of the response was determined. */
function onHead(res: NodeResponse, act: () => void): void {
  const { writeHead } = res
  let isFirst = true
  res.writeHead = function watched(...args) {
    const result = writeHead.apply(res, [...args])
    if (isFirst) act()
    isFirst = false
    return result
  }
}
