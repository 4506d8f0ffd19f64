/** The response to an upgrade that the origin accepted: 101, and the connection to the origin. */
import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { reportSocketEnd } from '../../http/socket-end.ts'
import type { OpenStream } from '../../streams/open-streams.ts'
import { Fields } from './fields.ts'
import { type Relay, relay } from './web-socket-relay.ts'

/** RFC 6455 section 1.3. */
const HANDSHAKE_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** RFC 6455 section 11.3: the fields of the origin that belong to the handshake. */
const OF_HANDSHAKE = ['sec-websocket-accept', 'sec-websocket-protocol', 'sec-websocket-extensions']

/** Open relays of a server. */
export type Relays = Set<Relay>

export class UpgradedResponse {
  readonly status = 101
  readonly statusText = 'Switching Protocols'
  readonly body = null
  readonly headers = new Fields()
  /** The connection to the origin. */
  readonly origin: Duplex
  #stream: OpenStream | undefined

  /** `received` are the fields of the origin. Only those of the handshake are kept. */
  constructor(origin: Duplex, received: Fields) {
    this.origin = origin
    // undici has removed its own listener. Without one, a reset by the origin would end the process.
    origin.on('error', () => origin.destroy())
    this.headers.set('connection', 'Upgrade')
    this.headers.set('upgrade', 'websocket')
    for (const name of OF_HANDSHAKE) {
      const value = received.get(name)
      if (value !== null) this.headers.set(name, value)
    }
  }

  /** Closes the WebSocket at both ends when its stream must end. */
  endWith(stream: OpenStream | undefined): this {
    this.#stream = stream
    return this
  }

  /** Sends the response, and relays until one end closes. `head` are bytes after the request. */
  writeTo(client: Duplex, head: Buffer, relays: Relays): void {
    const lines = [...this.headers].map(([name, value]) => `${name}: ${value}\r\n`)
    client.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`, 'latin1')
    if (head.length > 0) client.unshift(head)
    const stream = this.#stream
    const joined = relay(client, this.origin, () => {
      relays.delete(joined)
      stream?.closed()
      reportSocketEnd(this)
    })
    relays.add(joined)
    stream?.opened({
      cut: ({ problem }) => {
        // The other end may take a second to close.
        reportSocketEnd(this)
        joined.close(1008, problem.code)
      },
    })
  }

  /** Ends the connection to the origin: the client has left. */
  discard(): void {
    this.origin.destroy()
    reportSocketEnd(this)
  }
}

Object.setPrototypeOf(UpgradedResponse.prototype, Response.prototype)

/** Whether the origin has accepted the handshake with this key (RFC 6455 section 4.2.2). */
export function isAccepted(fields: Fields, key: string | undefined): boolean {
  const expected = createHash('sha1').update(`${key}${HANDSHAKE_GUID}`).digest('base64')
  return (
    fields.get('upgrade')?.toLowerCase() === 'websocket' &&
    fields.get('sec-websocket-accept') === expected
  )
}
