import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { faultProxyState, setFault } from '../../dev/fault-proxy/control.ts'
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import { type FaultProxy, startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { randomBytes, seededRandom } from '../../dev/fault-proxy/random.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'

interface Answer {
  readonly status: number
  readonly body: Buffer
  /** Why it is not whole, if it is not. */
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
  agent.destroy()
  await proxy.close()
  await target.close()
})

/** One request over the connection that all requests of a test share. */
function ask(path: string, body?: Buffer, through = proxy, over = agent): Promise<Answer> {
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
const MEBIBYTE = randomBytes(seededRandom(7), 1_048_576)

describe('the fault proxy', () => {
  test('with nothing wrong every byte goes through, over one connection', async () => {
    const { status, body } = await ask('/big', MEBIBYTE)
    expect(status).toBe(200)
    expect(sha256(body)).toBe(sha256(MEBIBYTE))
    expect(await text(ask('/small'))).toBe('answer to /small')
    expect(proxy.connections()).toEqual({ accepted: 1, open: 1 })
    const { fromClients, toTarget, fromTarget, toClients } = proxy.bytes()
    expect(toTarget).toBe(fromClients)
    expect(toClients).toBe(fromTarget)
    expect(fromClients).toBeGreaterThan(MEBIBYTE.length)
  })

  test('latency: late, whole and in order, though each piece has another delay', async () => {
    const prompt = ask('/prompt')
    await prompt
    await proxy.set({ kind: 'latency', ms: 1, jitterMs: 30 })
    expect(sha256((await ask('/big', MEBIBYTE)).body)).toBe(sha256(MEBIBYTE))

    await proxy.set({ kind: 'latency', ms: 400 })
    const other = await startFaultProxy({ target: { host: '127.0.0.1', port: target.port } })
    const order: string[] = []
    const late = ask('/late').then(() => order.push('late'))
    while (reached.at(-1) !== 'GET /late') await tick()
    await ask('/prompt', undefined, other, new Agent()).then(() => order.push('prompt'))
    await late
    expect(order).toEqual(['prompt', 'late'])
    await other.close()
  })

  test('hang: a connection is accepted, nothing is forwarded, and it goes on afterwards', async () => {
    await ask('/before')
    await proxy.set({ kind: 'hang' })
    const { toTarget, fromClients } = proxy.bytes()
    const waiting = ask('/held')
    while (proxy.bytes().fromClients === fromClients) await tick()
    const fresh = connect(proxy.port, '127.0.0.1')
    await once(fresh, 'connect')
    expect(proxy.bytes().toTarget).toBe(toTarget)
    expect(reached).toEqual(['GET /before'])

    await proxy.set({ kind: 'none' })
    expect(await text(waiting)).toBe('answer to /held')
    fresh.destroy()
  })

  test('hang: what a client gave up is not executed afterwards', async () => {
    await ask('/before')
    await proxy.set({ kind: 'hang' })
    const { fromClients } = proxy.bytes()
    const gone = ask('/given-up')
    while (proxy.bytes().fromClients === fromClients) await tick()
    agent.destroy()
    expect((await gone).failure).toBe('ECONNRESET')
    while (proxy.connections().open > 0) await tick()
    await proxy.set({ kind: 'none' })
    expect(await text(ask('/after', undefined, proxy, new Agent()))).toBe('answer to /after')
    expect(reached).toEqual(['GET /before', 'GET /after'])
  })

  test('refuse: open connections are reset, new ones refused, and the port comes back', async () => {
    await ask('/before')
    await proxy.set({ kind: 'refuse' })
    while (proxy.connections().open > 0) await tick()
    expect((await ask('/refused')).failure).toMatch(/ECONNREFUSED|ECONNRESET/)
    expect((await ask('/refused')).failure).toBe('ECONNREFUSED')
    await proxy.set({ kind: 'none' })
    expect(await text(ask('/after'))).toBe('answer to /after')
    expect(reached).toEqual(['GET /before', 'GET /after'])
  })

  test('reset: the target has worked, and its answer breaks off', async () => {
    await proxy.set({ kind: 'reset', afterBytes: 0 })
    expect(await ask('/lost')).toEqual({
      status: 0,
      body: Buffer.alloc(0),
      failure: 'ECONNRESET',
    })
    expect(reached).toEqual(['GET /lost'])
    expect(proxy.bytes().toClients).toBe(0)

    await proxy.set({ kind: 'reset', afterBytes: 5_000 })
    const half = await ask('/half', MEBIBYTE)
    expect(half.failure).toBe('ECONNRESET')
    expect(proxy.bytes().toClients).toBe(5_000)
  })

  test('truncate: so many bytes and a regular end, counted anew for each answer', async () => {
    await proxy.set({ kind: 'truncate', afterBytes: 5_000 })
    expect(await text(ask('/short'))).toBe('answer to /short')
    expect(await text(ask('/short-too'))).toBe('answer to /short-too')
    const before = proxy.bytes().toClients
    const cut = await ask('/cut', MEBIBYTE)
    expect(cut.failure).toBe('ECONNRESET') // what Node calls an end before Content-Length
    expect(proxy.bytes().toClients - before).toBe(5_000)
  })

  test('throttle: whole, and later than a small answer that came after it', async () => {
    await proxy.set({ kind: 'throttle', bytesPerSecond: 100_000 })
    const other = await startFaultProxy({ target: { host: '127.0.0.1', port: target.port } })
    const order: string[] = []
    const body = MEBIBYTE.subarray(0, 40_000)
    const slow = ask('/slow', body).then((answer) => {
      order.push('slow')
      return answer
    })
    while (reached.length === 0) await tick()
    await ask('/quick', undefined, other, new Agent()).then(() => order.push('quick'))
    expect(sha256((await slow).body)).toBe(sha256(body))
    expect(order).toEqual(['quick', 'slow'])
    await other.close()
  })

  test('garbage: bytes that are no HTTP, the same for the same seed, on open connections too', async () => {
    await ask('/before')
    await proxy.set({ kind: 'garbage', bytes: 64 })
    expect((await ask('/spoiled')).failure).toMatch(/^HPE_|ECONNRESET/)
    expect(reached).toEqual(['GET /before'])

    const said: string[] = []
    for (const seed of [5, 5, 6]) {
      const seeded = await startFaultProxy({ target: { host: '127.0.0.1', port: 1 }, seed })
      await seeded.set({ kind: 'garbage', bytes: 64 })
      const socket = connect(seeded.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\n\r\n'))
      said.push(Buffer.concat(await socket.toArray()).toString('hex'))
      await seeded.close()
    }
    expect(said[0]).toHaveLength(128)
    expect(said[1]).toBe(said[0])
    expect(said[2]).not.toBe(said[0])
  })

  test('answer: every request of an open connection gets it, and the target none', async () => {
    await ask('/before')
    const packed = gzipSync('half of this').subarray(0, 15)
    await proxy.set({
      kind: 'answer',
      status: 429,
      headers: { 'Content-Encoding': 'gzip' },
      bodyBase64: packed.toString('base64'),
    })
    for (const path of ['/one', '/two']) {
      const { status, body } = await ask(path)
      expect(status).toBe(429)
      expect(body.equals(packed)).toBe(true)
    }
    expect((await ask('/post', MEBIBYTE)).status).toBe(429)
    expect(reached).toEqual(['GET /before'])
    expect(proxy.connections().accepted).toBe(1)

    await proxy.set({ kind: 'none' })
    expect(await text(ask('/after'))).toBe('answer to /after')
    expect(proxy.connections().accepted).toBe(1)
  })

  test('answer: a length that lies, and a chunked request that is understood', async () => {
    await proxy.set({
      kind: 'answer',
      status: 200,
      headers: { 'Content-Length': '100' },
      body: 'short',
      close: true,
    })
    expect((await ask('/lie')).failure).toBe('ECONNRESET')

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

  test('answer: an exchange that began with the target ends with it', async () => {
    await proxy.set({ kind: 'hang' })
    const waiting = ask('/held')
    while (proxy.bytes().fromClients === 0) await tick()
    await proxy.set({ kind: 'answer', status: 500 })
    expect(await text(waiting)).toBe('answer to /held')
    expect((await ask('/next')).status).toBe(500)
  })

  test('flap: down first, then up, and again', async () => {
    const [downMs, upMs] = [60, 40]
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      await proxy.set({ kind: 'flap', upMs, downMs, down: { kind: 'answer', status: 599 } })
      for (const [status, ms] of [
        [599, downMs],
        [200, upMs],
        [599, downMs],
        [200, upMs],
      ] as const) {
        vi.advanceTimersByTime(ms - 1)
        expect((await ask('/')).status).toBe(status)
        vi.advanceTimersByTime(1)
      }
      await proxy.set({ kind: 'none' })
      vi.advanceTimersByTime(2 * (downMs + upMs))
      expect((await ask('/')).status).toBe(200)
    } finally {
      vi.useRealTimers()
    }
  })

  test('a target that is gone is a reset, and does not end the proxy', async () => {
    await target.close()
    expect((await ask('/')).failure).toBe('ECONNRESET')
    expect((await ask('/')).failure).toBe('ECONNRESET')
  })

  test('another process can set faults and ask what went through', async () => {
    const fault: Fault = { kind: 'answer', status: 503, body: 'told over HTTP' }
    await setFault(proxy, fault)
    expect(await text(ask('/'))).toBe('told over HTTP')
    const state = await faultProxyState(proxy)
    expect(state.fault).toEqual(fault)
    expect(state.connections).toEqual(proxy.connections())
    expect(state.bytes).toEqual(proxy.bytes())
    await expect(setFault(proxy, { kind: 'latency', ms: -1 })).rejects.toThrow(TypeError)
    await expect(setFault(proxy, { kind: 'none', more: 1 } as Fault)).rejects.toThrow(TypeError)
    expect((await faultProxyState(proxy)).fault).toEqual(fault)
  })
})

const tick = () => new Promise((resolve) => setTimeout(resolve, 2))
