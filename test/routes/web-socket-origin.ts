/**
 * An origin that speaks WebSocket: it echoes messages and reports the identity headers it received.
 */

/** The close events of the sockets of this isolate. */
const closed: string[] = []
let opened = 0

export default {
  fetch(request: Request): Response {
    if (request.headers.get('Upgrade') !== 'websocket') {
      return Response.json({ opened, closed })
    }
    opened++
    const { 0: client, 1: server } = new WebSocketPair()
    server.binaryType = 'arraybuffer'
    server.accept()
    server.addEventListener('message', ({ data }) => {
      if (data === 'who') server.send(request.headers.get('X-Auth-Subject') ?? 'anonymous')
      else if (data === 'headers') server.send(JSON.stringify([...request.headers]))
      else if (data === 'bye') server.close(4001, 'as requested')
      else server.send(data)
    })
    server.addEventListener('close', ({ code, reason }) => {
      closed.push(`${code} ${reason}`)
    })
    const headers = new Headers({ 'Set-Cookie': 'sid=1' })
    if (request.headers.has('X-Large')) headers.set('X-Large', 'y'.repeat(131_072))
    if (request.headers.has('Sec-WebSocket-Protocol')) {
      headers.set('Sec-WebSocket-Protocol', 'chat')
    }
    return new Response(null, { status: 101, webSocket: client, headers })
  },
}
