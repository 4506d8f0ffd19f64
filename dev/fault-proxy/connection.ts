/** One connection through the proxy: a client, and the target once there is data to forward. */
import { connect, type Socket } from 'node:net'
import { answerBytes } from './answer.ts'
import type { LastingFault } from './fault.ts'
import { createFlow, type Flow } from './flow.ts'
import { randomBytes } from './random.ts'
import { createRequestFraming } from './request-framing.ts'
import type { Traffic } from './state.ts'

const GARBAGE_BYTES = 512

export interface ConnectionOptions {
  readonly target: { readonly host: string; readonly port: number }
  /** Counters that the connection increases. */
  readonly traffic: { -readonly [Octets in keyof Traffic]: number }
  random(): number
  fault(): LastingFault
}

export interface Connection {
  /** Applies a changed fault. Call it after each change. */
  refault(): void
  /** Resets both sides. */
  reset(): void
}

/**
 * Serves `client`. Data from the client after data from the target begins a new exchange. An
 * exchange that began with the target also ends with it, so `answer` and `garbage` apply only to
 * new exchanges.
 */
export function serveConnection(client: Socket, options: ConnectionOptions): Connection {
  const { traffic, fault, random } = options
  let upstream: { readonly socket: Socket; readonly flow: Flow } | undefined
  let isNewExchange = true
  let answering: Extract<LastingFault, { kind: 'answer' }> | undefined
  let inserted: LastingFault | undefined

  const framing = createRequestFraming(() => {
    if (answering === undefined) return
    say(answerBytes(answering))
    if (answering.close) client.end()
  })
  const down = createFlow({
    sink: client,
    fault,
    onForwarded(bytes) {
      traffic.toClients += bytes
    },
    onPressure: (isTooMuch) => pressure(upstream?.socket, isTooMuch),
    onBreak(by) {
      if (by === 'reset') return reset()
      down.stop()
      upstream?.flow.stop()
      upstream?.socket.destroy()
      client.end()
    },
    delayMs() {
      const now = fault()
      return now.kind === 'latency' ? now.ms + random() * (now.jitterMs ?? 0) : 0
    },
  })

  function openTarget(): Flow {
    const socket = connect(options.target.port, options.target.host)
    socket.setNoDelay(true)
    const flow = createFlow({
      sink: socket,
      fault: () => (fault().kind === 'hang' ? fault() : { kind: 'none' }),
      onForwarded(bytes) {
        traffic.toTarget += bytes
      },
      onPressure: (isTooMuch) => pressure(client, isTooMuch),
      onBreak: () => {},
      delayMs: () => 0,
    })
    socket.on('data', (data) => {
      traffic.fromTarget += data.length
      isNewExchange = true
      const now = fault()
      if (now.kind === 'insert' && now !== inserted) {
        inserted = now
        down.push(Buffer.from(now.text))
      }
      down.push(data)
    })
    socket.on('end', () => down.end())
    socket.on('error', () => reset())
    upstream = { socket, flow }
    return flow
  }

  function say(data: Buffer): void {
    if (!client.writable) return
    traffic.toClients += data.length
    client.write(data)
  }

  function reset(): void {
    down.stop()
    upstream?.flow.stop()
    upstream?.socket.destroy()
    client.resetAndDestroy()
  }

  client.setNoDelay(true)
  client.on('data', (data) => {
    traffic.fromClients += data.length
    if (!framing.isIdle()) return framing.push(data)
    if (isNewExchange) {
      const now = fault()
      if (now.kind === 'answer') {
        answering = now
        return framing.push(data)
      }
      if (now.kind === 'garbage') {
        say(randomBytes(random, now.bytes ?? GARBAGE_BYTES))
        return void client.end()
      }
      isNewExchange = false
      down.restart()
    }
    const { flow } = upstream ?? { flow: openTarget() }
    flow.push(data)
  })
  client.on('end', () => {
    if (upstream === undefined) client.end()
    // The client no longer waits for the response to the data that was held back.
    else if (upstream.flow.isHolding()) reset()
    else upstream.flow.end()
  })
  client.on('error', () => {})
  client.on('close', () => {
    down.stop()
    upstream?.flow.stop()
    upstream?.socket.destroy()
  })

  return {
    refault() {
      upstream?.flow.pump()
      down.pump()
    },
    reset,
  }
}

function pressure(socket: Socket | undefined, isTooMuch: boolean): void {
  if (isTooMuch) socket?.pause()
  else if (socket?.isPaused()) socket.resume()
}
