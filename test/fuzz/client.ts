/** The client of the fuzz: sends the request of a case over TCP, and does what the case says. */
import { connect, type Socket } from 'node:net'
import { HOST } from '../../dev/start/settings.ts'
import { END_OF_HEAD, type Received, read, requestOf, responseOf } from './messages.ts'
import type { Case } from './plan.ts'

/** No case waits longer for an end: neither a pause nor a timeout of the gateway is that long. */
export const DEADLINE_MS = 30_000

const SMALL_BYTES = 20_000
const LAST_CHUNK = Buffer.from(`0${END_OF_HEAD}`)

export interface Outcome {
  readonly received: Received
  /** Whether the connection ended, or the response, or the client left, before the deadline. */
  readonly hasEnded: boolean
  /** The connection, if the next case can use it. */
  readonly socket: Socket | undefined
}

/** Opens a connection. Its errors are those of the cases. */
export function open(port: number): Socket {
  const socket = connect(port, HOST)
  socket.on('error', () => {})
  return socket
}

/** The last chunk may come in two parts. */
const endsWithLastChunk = (parts: readonly Buffer[]) =>
  Buffer.concat(parts.slice(-2)).subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)

/** Runs a case on a connection. Never rejects. */
export async function runCase(of: Case, socket: Socket): Promise<Outcome> {
  const { client } = of
  const parts: Buffer[] = []
  let bytes = 0
  let hasLeft = false
  const ended = Promise.withResolvers<boolean>()
  const timers = [setTimeout(ended.resolve, DEADLINE_MS, false)]
  const onClose = () => ended.resolve(true)
  const responseBytes = client?.side === 'response' ? client.at * responseOf(of).length : Infinity

  function leave(end: () => void): void {
    hasLeft = true
    end()
    ended.resolve(true)
  }
  function act({ act: what, ms }: NonNullable<Case['client']>): void {
    switch (what) {
      case 'abort':
        leave(() => socket.destroy())
        return
      case 'reset':
        leave(() => socket.resetAndDestroy())
        return
      case 'halfClose':
        socket.end()
        return
      case 'stall':
      case 'deaf':
        if (what === 'deaf') socket.pause()
        timers.push(setTimeout(leave, ms, () => socket.destroy()))
    }
  }
  function onData(chunk: Buffer): void {
    parts.push(chunk)
    const before = bytes
    bytes += chunk.length
    if (client !== undefined && before < responseBytes && bytes >= responseBytes) act(client)
    // Reading all of a long response for each chunk would take longer than the case.
    if (!mayEnd(bytes)) return
    const { status, isComplete } = read(Buffer.concat(parts))
    if (isComplete && status !== 101) ended.resolve(true)
    if (status === 101 && !isSent) {
      isSent = true
      socket.write(frames)
    }
  }
  // Few responses arrive in one piece, and a long one ends with its last chunk or at its length.
  const expected = responseOf(of).length
  const mayEnd = (received: number) =>
    received < SMALL_BYTES || endsWithLastChunk(parts) || received >= expected
  function onEnd(): void {
    if (of.kind === 'socket') socket.end()
  }
  socket.on('data', onData).once('close', onClose).once('end', onEnd)

  const whole = requestOf(of)
  const isPatient = of.kind === 'socket' && !of.isEager && client === undefined
  const headBytes = whole.indexOf(END_OF_HEAD) + END_OF_HEAD.length
  const frames = whole.subarray(headBytes)
  let isSent = !isPatient
  const request = isPatient ? whole.subarray(0, headBytes) : whole
  if (client?.side !== 'request') socket.write(request)
  else if (client.act === 'deaf') {
    socket.write(request)
    act(client)
  } else socket.write(request.subarray(0, client.at * request.length), () => act(client))
  if (socket.destroyed) onClose()

  const hasEnded = await ended.promise
  for (const timer of timers) clearTimeout(timer)
  socket.off('data', onData).off('close', onClose).off('end', onEnd)
  const received = read(Buffer.concat(parts))
  const isReusable =
    of.kind !== 'socket' &&
    !hasLeft &&
    of.client === undefined &&
    of.origin === undefined &&
    received.isComplete
  const isKept = isReusable && !received.isLast && !socket.destroyed
  if (!isKept) socket.destroy()
  return { received, hasEnded, socket: isKept ? socket : undefined }
}
