import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { randomBytes, seededRandom } from '../../dev/fault-proxy/random.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'

interface Answer {
  readonly status: number
  readonly body: Buffer
  /** The error code of the client if the response is incomplete. */
  readonly failure?: string
}

let target: TestServer
let proxy: FaultProxy
let agent: Agent
let reached: string[]

beforeEach(async () => {
  reached = []
  target = await startHttpServer(async (incoming, response) => {
    reached.push(`${incoming.method} ${incoming.url}`)
    const body = Buffer.concat(await incoming.toArray())
    response.setHeader('Content-Type', 'text/plain')
    response.end(body.length > 0 ? body : `answer to ${incoming.url}`)
  })
  proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: target.port } })
  agent = new Agent({ keepAlive: true, maxSockets: 1 })
})

afterEach(async () => {
  vi.useRealTimers()
  agent.destroy()
  await proxy.close()
  await target.close()
})

/** Sends a request. By default all requests of a test use one connection. */
function send(path: string, body?: Buffer, through = proxy, over = agent): Promise<Answer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let status = 0
    const end = (failure?: string) =>
      resolve({ status, body: Buffer.concat(chunks), ...(failure !== undefined && { failure }) })
    const outgoing = request(
      `${through.url}${path}`,
      { agent: over, method: body === undefined ? 'GET' : 'POST' },
      (incoming) => {
        status = incoming.statusCode ?? 0
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.on('end', () => end())
        incoming.on('error', (error: NodeJS.ErrnoException) => end(error.code))
      },
    )
    outgoing.on('error', (error: NodeJS.ErrnoException) => end(error.code))
    outgoing.end(body)
  })
}

const text = async (answer: Promise<Answer>) => (await answer).body.toString()
const sha256 = (data: Buffer) => createHash('sha256').update(data).digest('hex')
/** All sockets are of this process, so each turn of its event loop brings the response nearer. */
const MAX_TURNS = 100_000
const MEBIBYTE = randomBytes(seededRandom(7), 1_048_576)

describe('the fault proxy', () => {
  test('none: forwards every byte, over one connection', async () => {
    const { status, body } = await send('/big', MEBIBYTE)
    expect(status).toBe(200)
    expect(sha256(body)).toBe(sha256(MEBIBYTE))
    expect(await text(send('/small'))).toBe('answer to /small')
    expect(proxy.connections()).toEqual({ accepted: 1, open: 1 })
    const { fromClients, toTarget, fromTarget, toClients } = proxy.bytes()
    expect(toTarget).toBe(fromClients)
    expect(toClients).toBe(fromTarget)
    expect(fromClients).toBeGreaterThan(MEBIBYTE.length)
  })

  test('latency: delays a response, complete and in order, even if the delay of each chunk differs', async () => {
    const prompt = send('/prompt')
    await prompt
    await proxy.set({ kind: 'latency', ms: 1, jitterMs: 30 })
    expect(sha256((await send('/big', MEBIBYTE)).body)).toBe(sha256(MEBIBYTE))

    await proxy.set({ kind: 'latency', ms: 400 })
    const other = await startFaultProxy({ target: { host: '127.0.0.1', port: target.port } })
    const order: string[] = []
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { fromTarget, toClients } = proxy.bytes()
    const late = send('/late').then(() => order.push('late'))
    const isHeld = () => proxy.bytes().fromTarget > fromTarget
    // `expect.poll` would advance the clock.
    for (let turns = 0; !isHeld() && turns < MAX_TURNS; turns++) await turn()
    expect(isHeld()).toBe(true)
    await send('/prompt', undefined, other, new Agent()).then(() => order.push('prompt'))
    vi.advanceTimersByTime(399)
    expect(proxy.bytes().toClients).toBe(toClients)
    vi.advanceTimersByTime(1)
    expect(proxy.bytes().toClients).toBeGreaterThan(toClients)
    await late
    expect(order).toEqual(['prompt', 'late'])
    await other.close()
  })

  test('hang: accepts connections, forwards nothing, and continues after the fault', async () => {
    await send('/before')
    await proxy.set({ kind: 'hang' })
    const { toTarget, fromClients } = proxy.bytes()
    const waiting = send('/held')
    while (proxy.bytes().fromClients === fromClients) await tick()
    const fresh = connect(proxy.port, '127.0.0.1')
    await once(fresh, 'connect')
    expect(proxy.bytes().toTarget).toBe(toTarget)
    expect(reached).toEqual(['GET /before'])

    await proxy.set({ kind: 'none' })
    expect(await text(waiting)).toBe('answer to /held')
    fresh.destroy()
  })

  test('hang: never forwards a request that its client aborted', async () => {
    await send('/before')
    await proxy.set({ kind: 'hang' })
    const { fromClients } = proxy.bytes()
    const gone = send('/given-up')
    while (proxy.bytes().fromClients === fromClients) await tick()
    agent.destroy()
    expect((await gone).failure).toBe('ECONNRESET')
    while (proxy.connections().open > 0) await tick()
    await proxy.set({ kind: 'none' })
    expect(await text(send('/after', undefined, proxy, new Agent()))).toBe('answer to /after')
    expect(reached).toEqual(['GET /before', 'GET /after'])
  })

  test('refuse: resets open connections, refuses new ones, and listens again after the fault', async () => {
    await send('/before')
    await proxy.set({ kind: 'refuse' })
    while (proxy.connections().open > 0) await tick()
    expect((await send('/refused')).failure).toMatch(/ECONNREFUSED|ECONNRESET/)
    expect((await send('/refused')).failure).toBe('ECONNREFUSED')
    await proxy.set({ kind: 'none' })
    expect(await text(send('/after'))).toBe('answer to /after')
    expect(reached).toEqual(['GET /before', 'GET /after'])
  })

  test('reset: the target receives the request, and the response is cut off', async () => {
    await proxy.set({ kind: 'reset', afterBytes: 0 })
    expect(await send('/lost')).toEqual({
      status: 0,
      body: Buffer.alloc(0),
      failure: 'ECONNRESET',
    })
    expect(reached).toEqual(['GET /lost'])
    expect(proxy.bytes().toClients).toBe(0)

    await proxy.set({ kind: 'reset', afterBytes: 5_000 })
    const half = await send('/half', MEBIBYTE)
    expect(half.failure).toBe('ECONNRESET')
    expect(proxy.bytes().toClients).toBe(5_000)
  })

  test('truncate: ends each response regularly after a number of bytes', async () => {
    await proxy.set({ kind: 'truncate', afterBytes: 5_000 })
    expect(await text(send('/short'))).toBe('answer to /short')
    expect(await text(send('/short-too'))).toBe('answer to /short-too')
    const before = proxy.bytes().toClients
    const cut = await send('/cut', MEBIBYTE)
    expect(cut.failure).toBe('ECONNRESET') // Node's error for an end before Content-Length
    expect(proxy.bytes().toClients - before).toBe(5_000)
  })

  test('throttle: delivers a response complete, and later than a small response that started after it', async () => {
    await proxy.set({ kind: 'throttle', bytesPerSecond: 100_000 })
    const other = await startFaultProxy({ target: { host: '127.0.0.1', port: target.port } })
    const order: string[] = []
    const body = MEBIBYTE.subarray(0, 40_000)
    const slow = send('/slow', body).then((answer) => {
      order.push('slow')
      return answer
    })
    while (reached.length === 0) await tick()
    await send('/quick', undefined, other, new Agent()).then(() => order.push('quick'))
    expect(sha256((await slow).body)).toBe(sha256(body))
    expect(order).toEqual(['quick', 'slow'])
    await other.close()
  })

  test('garbage: sends bytes that are not HTTP, equal for equal seeds, on open connections as well', async () => {
    await send('/before')
    await proxy.set({ kind: 'garbage', bytes: 64 })
    expect((await send('/spoiled')).failure).toMatch(/^HPE_|ECONNRESET/)
    expect(reached).toEqual(['GET /before'])

    const received: string[] = []
    for (const seed of [5, 5, 6]) {
      const seeded = await startFaultProxy({ target: { host: '127.0.0.1', port: 1 }, seed })
      await seeded.set({ kind: 'garbage', bytes: 64 })
      const socket = connect(seeded.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\n\r\n'))
      received.push(Buffer.concat(await socket.toArray()).toString('hex'))
      await seeded.close()
    }
    expect(received[0]).toHaveLength(128)
    expect(received[1]).toBe(received[0])
    expect(received[2]).not.toBe(received[0])
  })

  test('answer: responds to every request of an open connection without the target', async () => {
    await send('/before')
    const packed = gzipSync('half of this').subarray(0, 15)
    await proxy.set({
      kind: 'answer',
      status: 429,
      headers: { 'Content-Encoding': 'gzip' },
      bodyBase64: packed.toString('base64'),
    })
    for (const path of ['/one', '/two']) {
      const { status, body } = await send(path)
      expect(status).toBe(429)
      expect(body.equals(packed)).toBe(true)
    }
    expect((await send('/post', MEBIBYTE)).status).toBe(429)
    expect(reached).toEqual(['GET /before'])
    expect(proxy.connections().accepted).toBe(1)

    await proxy.set({ kind: 'none' })
    expect(await text(send('/after'))).toBe('answer to /after')
    expect(proxy.connections().accepted).toBe(1)
  })

  test('answer: can send a wrong Content-Length, and reads chunked requests', async () => {
    await proxy.set({
      kind: 'answer',
      status: 200,
      headers: { 'Content-Length': '100' },
      body: 'short',
      close: true,
    })
    expect((await send('/lie')).failure).toBe('ECONNRESET')

    await proxy.set({ kind: 'answer', status: 200, body: 'whole' })
    const socket = connect(proxy.port, '127.0.0.1', () => {
      socket.write('POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel')
      socket.write('lo\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n')
      socket.end()
    })
    const answers = Buffer.concat(await socket.toArray()).toString()
    expect(answers.match(/whole/g)).toHaveLength(2)
    expect(reached).toEqual([])
  })

  test('answer: does not replace the response to a request that was sent before', async () => {
    await proxy.set({ kind: 'hang' })
    const waiting = send('/held')
    while (proxy.bytes().fromClients === 0) await tick()
    await proxy.set({ kind: 'answer', status: 500 })
    expect(await text(waiting)).toBe('answer to /held')
    expect((await send('/next')).status).toBe(500)
  })

  test('flap: alternates between the fault and no fault, the fault first', async () => {
    const [downMs, upMs] = [60, 40]
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    await proxy.set({ kind: 'flap', upMs, downMs, down: { kind: 'answer', status: 599 } })
    for (const [status, ms] of [
      [599, downMs],
      [200, upMs],
      [599, downMs],
      [200, upMs],
    ] as const) {
      vi.advanceTimersByTime(ms - 1)
      expect((await send('/')).status).toBe(status)
      vi.advanceTimersByTime(1)
    }
    await proxy.set({ kind: 'none' })
    vi.advanceTimersByTime(2 * (downMs + upMs))
    expect((await send('/')).status).toBe(200)
  })

  test('resets connections while the target is down, and continues', async () => {
    await target.close()
    expect((await send('/')).failure).toBe('ECONNRESET')
    expect((await send('/')).failure).toBe('ECONNRESET')
  })
})

const turn = () => new Promise((resolve) => setImmediate(resolve))
const tick = () => new Promise((resolve) => setTimeout(resolve, 2))
