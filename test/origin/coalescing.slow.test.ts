import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { coalescedOrigin } from '../../src/origin/coalesced-origin.ts'
import { createOrigin } from '../../src/origin/origin.ts'
import { freePort } from '../harness/process.ts'
import { type Handler, startHttpOrigin } from './origin-server.ts'
import { RUNTIMES } from './runtimes.ts'
import { dial, exchange } from './wire.ts'
import type { Running } from './workerd.ts'

const PATIENCE = { timeout: 20_000, interval: 10 }
const ALICE = {
  issuer: 'https://idp.test',
  subject: 'alice',
  client: 'web',
  tenant: 'acme',
  roles: ['reader'],
  scopes: ['orders:read'],
  expiresAtSeconds: 4_000_000_000,
}

describe.each(RUNTIMES)('on $name [S75]', ({ start }) => {
  let origin: Awaited<ReturnType<typeof startHttpOrigin>>
  let gateway: Running
  let handler: Handler
  /** Requests that the origin has not answered yet. */
  let held: [request: IncomingMessage, response: ServerResponse][] = []

  beforeAll(async () => {
    origin = await startHttpOrigin((request, response) => {
      // workerd repeats a GET if a kept-alive connection was closed.
      response.shouldKeepAlive = false
      handler(request, response)
    })
    gateway = await startGateway(origin.port)
  })
  afterAll(() => Promise.all([gateway?.stop(), origin?.close()]))
  afterEach(() => {
    held = []
  })

  function startGateway(port: number, timeoutMs = 30_000): Promise<Running> {
    const vars = { ORIGIN_URL: `http://127.0.0.1:${port}`, TIMEOUT_MS: String(timeoutMs) }
    return start({ entry: 'test/origin/coalescing-worker.ts', vars })
  }

  const hold: Handler = (request, response) => void held.push([request, response])

  let pages = 0
  /** Returns a path that no test has requested. */
  const newPath = () => `/page-${++pages}`

  const fetchPath = (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${gateway.port}${path}`, { headers, ...init })
  const as = (caller: object) => ({ 'X-User-Test': JSON.stringify(caller) })

  /** Returns how many requests reached the origin's port in the one isolate. */
  async function entered(): Promise<number> {
    return Number(await (await fetch(`http://127.0.0.1:${gateway.port}/read-here`)).text())
  }

  const callsFor = (path: string) =>
    origin.requests.filter(({ url }) => url?.startsWith(path)).length

  /**
   * Sends requests that the origin holds back until all have arrived, at least `calls` of them at the
   * origin, and then runs `release`.
   */
  async function together<Answer>(
    count: number,
    send: (index: number) => Promise<Answer>,
    release: () => void,
    calls = 1,
  ): Promise<Answer[]> {
    const before = await entered()
    const answers = Array.from({ length: count }, (_, index) => send(index))
    await expect.poll(entered, PATIENCE).toBe(before + count)
    await expect.poll(() => held.length, PATIENCE).toBe(calls)
    handler = serve
    release()
    return Promise.all(answers)
  }

  /** The response of the origin to a request. */
  const echo = ({ url, headers }: IncomingMessage) =>
    JSON.stringify({ url, subject: headers['x-auth-subject'], issuer: headers['x-auth-issuer'] })
  const serve: Handler = (request, response) =>
    void response
      .writeHead(200, { 'content-type': 'application/json', etag: '"1"' })
      .end(echo(request))
  const releaseAll = () => {
    for (const [request, response] of held.splice(0)) serve(request, response)
  }

  describe('simultaneous equal requests', () => {
    test.each([
      ['a known caller', as(ALICE)],
      ['anonymous callers of one address', {}],
    ])('make one call for %s: 100 requests, 100 correct responses', async (_, headers) => {
      const path = newPath()
      handler = hold
      const responses = await together(100, () => fetchPath(`${path}?q=1`, headers), releaseAll)
      const subject = 'X-User-Test' in headers ? { subject: 'alice', issuer: ALICE.issuer } : {}
      const right = JSON.stringify({ url: `${path}?q=1`, ...subject })
      for (const response of responses) {
        expect([response.status, await response.text()]).toEqual([200, right])
        expect(response.headers.get('etag')).toBe('"1"')
      }
      expect(callsFor(path)).toBe(1)
    })

    test('call the origin again after the response: coalescing is not a cache', async () => {
      const path = newPath()
      handler = hold
      await together(5, () => fetchPath(path, as(ALICE)), releaseAll)
      for (let round = 2; round <= 4; round++) {
        expect((await fetchPath(path, as(ALICE))).status).toBe(200)
        expect(callsFor(path)).toBe(round)
      }
    })

    test('stream to the first request while the others wait', async () => {
      const path = newPath()
      handler = hold
      let body!: ServerResponse
      const before = await entered()
      const first = fetchPath(path)
      await expect.poll(() => held.length, PATIENCE).toBe(1)
      const others = Promise.all([fetchPath(path), fetchPath(path)])
      await expect.poll(entered, PATIENCE).toBe(before + 3)
      for (const [, response] of held) body = response.writeHead(200)
      body.write('first ')
      const reader = ((await first).body as ReadableStream<Uint8Array>).getReader()
      expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('first ')
      body.end('second')
      expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('second')
      for (const response of await others) expect(await response.text()).toBe('first second')
      expect(callsFor(path)).toBe(1)
    })

    const packed = gzipSync('the same words over and over. '.repeat(500))
    test.each<[string, number, Record<string, string>, Buffer | undefined]>([
      ['packed', 200, { 'content-encoding': 'gzip', 'content-type': 'text/plain' }, packed],
      ['of 256 KiB', 200, {}, Buffer.alloc(262_144, 'x')],
      ['empty', 204, { etag: '"1"' }, undefined],
      ['not modified', 304, { etag: '"1"' }, undefined],
      ['a redirect', 302, { location: '/elsewhere' }, Buffer.from('there')],
      ['private', 200, { 'cache-control': 'private, max-age=5' }, Buffer.from('yours')],
      ['a refusal', 404, { 'content-type': 'text/plain' }, Buffer.from('no such page')],
      ['an error of the origin', 503, { 'retry-after': '7' }, Buffer.from('busy')],
    ])('share a response byte for byte that is %s', async (_, status, headers, body) => {
      const path = newPath()
      handler = hold
      const replies = await together(
        4,
        () => rawReply(path),
        () => {
          for (const [, response] of held) response.writeHead(status, headers).end(body)
        },
      )
      for (const reply of replies) {
        expect(reply.status).toBe(status)
        expect(reply.headers).toMatchObject(
          'cache-control' in headers ? {} : (headers as Record<string, string>),
        )
        expect(Buffer.compare(reply.body, body ?? Buffer.alloc(0))).toBe(0)
      }
      expect(callsFor(path)).toBe(1)
    })
  })

  /** Reads the response from the wire: `fetch` would decompress it and follow redirects. */
  async function rawReply(path: string) {
    const { request } = await import('node:http')
    const sent = request({ port: gateway.port, path, agent: false }).end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }
  }

  describe('requests that are never shared', () => {
    const { issuer, client, tenant, roles, scopes } = ALICE
    const variations: Record<string, string>[] = [
      {},
      as(ALICE),
      as({ ...ALICE, subject: 'bob' }),
      as({ ...ALICE, issuer: `${issuer}/other` }),
      as({ ...ALICE, client: `${client}2` }),
      as({ ...ALICE, tenant: `${tenant}2` }),
      as({ ...ALICE, tenant: undefined }),
      as({ ...ALICE, roles: [...roles, 'writer'] }),
      as({ ...ALICE, roles: [`${roles},writer`] }),
      as({ ...ALICE, scopes: [...scopes, 'orders:write'] }),
      as({ ...ALICE, scopes: [] }),
      // Also a name that could be read as another header.
      as({ ...ALICE, subject: 'alice\nx-auth-tenant:acme' }),
      { 'cf-connecting-ip': '192.0.2.1' },
      { 'cf-connecting-ip': '192.0.2.2' },
      { accept: 'text/html' },
      { 'accept-language': 'de' },
      { 'accept-encoding': 'br' },
      { range: 'bytes=0-1' },
      { 'if-none-match': '"1"' },
      { 'cache-control': 'no-cache' },
      { cookie: 'a=1' },
      { cookie: 'a=2' },
      { 'x-anything': '1' },
    ]

    test('requests that differ in caller, address or any header', async () => {
      const path = newPath()
      handler = hold
      const pairs = variations.flatMap((headers) => [headers, headers])
      const responses = await together(
        pairs.length,
        (at) => fetchPath(path, pairs[at]),
        releaseAll,
        variations.length,
      )
      expect(callsFor(path)).toBe(variations.length)
      for (const [at, response] of responses.entries()) {
        const caller = JSON.parse(pairs[at]?.['X-User-Test'] ?? 'null') as typeof ALICE | null
        const { subject } = (await response.json()) as { subject?: string }
        expect(subject && decodeURIComponent(subject)).toBe(caller?.subject)
      }
    })

    test('requests that differ in path or query, by any character', async () => {
      const path = newPath()
      const targets = [path, `${path}?`, `${path}?a=1`, `${path}?a=1&`, `${path}?A=1`, `${path}/x`]
      handler = hold
      // `fetch` would send the first two alike.
      const replies = await together(
        targets.length,
        (at) => rawReply(targets[at] ?? ''),
        releaseAll,
        targets.length,
      )
      expect(callsFor(path)).toBe(targets.length)
      for (const [at, { body }] of replies.entries()) {
        expect(JSON.parse(body.toString())).toMatchObject({ url: targets[at] })
      }
    })

    test.each([
      ['POST', 'x'],
      ['DELETE', undefined],
      ['HEAD', undefined],
      ['OPTIONS', undefined],
    ])('%s', async (method, body) => {
      const path = newPath()
      handler = hold
      const init = { method, ...(body !== undefined && { body }) }
      await together(5, () => fetchPath(path, as(ALICE), init), releaseAll, 5)
      expect(callsFor(path)).toBe(5)
    })

    test('an upgrade to a WebSocket', async () => {
      const path = newPath()
      handler = (_, response) => void response.writeHead(400).end()
      const handshake = [
        `GET ${path} HTTP/1.1\r\nHost: g.test\r\nConnection: upgrade\r\nUpgrade: websocket`,
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
        `X-User-Test: ${JSON.stringify(ALICE)}\r\n\r\n`,
      ].join('\r\n')
      await Promise.all(Array.from({ length: 3 }, () => dial(gateway.port, handshake)))
      await expect.poll(() => callsFor(path), PATIENCE).toBe(3)
    })

    test.each<[string, Record<string, string>, number]>([
      ['sets a cookie', { 'set-cookie': 'session=1' }, 10],
      ['must not be stored', { 'cache-control': 'private, no-store' }, 10],
      ['varies by everything', { vary: 'accept, *' }, 10],
      ['does not end', { 'content-type': 'text/event-stream' }, 10],
      ['declares more than 256 KiB', { 'content-length': '262145' }, 262_145],
      ['has more than 256 KiB', {}, 262_145],
    ])('a response that %s is not shared', async (_, headers, bytes) => {
      const path = newPath()
      const answer: Handler = (_request, response) =>
        void response.writeHead(200, headers).end(Buffer.alloc(bytes, String(callsFor(path))))
      handler = hold
      const bodies = await together(
        5,
        async () => (await fetchPath(path)).text(),
        () => {
          handler = answer
          for (const [request, response] of held) answer(request, response)
        },
      )
      expect(bodies.map(({ length }) => length)).toEqual(Array(5).fill(bytes))
      expect(new Set(bodies.map((body) => body[0]))).toEqual(new Set(['1', '2', '3', '4', '5']))
      expect(callsFor(path)).toBe(5)
    })

    test('a response with a body that is incomplete two seconds after its headers', async () => {
      const path = newPath()
      handler = hold
      let slow!: ServerResponse
      const answers = together(
        3,
        () => fetchPath(path),
        () => {
          for (const [, response] of held) slow = response.writeHead(200)
          slow.write('slow')
        },
      )
      await expect.poll(() => callsFor(path), PATIENCE).toBe(3)
      slow.end()
      const texts = (await answers).map((response) => response.text())
      const echo = JSON.stringify({ url: path })
      expect((await Promise.all(texts)).sort()).toEqual(['slow', echo, echo])
    })

    test('beyond 8 MiB at a time, each request makes its own call', async () => {
      const [path, keys] = [newPath(), 40]
      handler = hold
      const open: ServerResponse[] = []
      const answers = together(
        2 * keys,
        (at) => fetchPath(`${path}?${at % keys}`),
        () => {
          handler = (_, response) => void open.push(response.writeHead(200))
          for (const [, response] of held) open.push(response.writeHead(200))
          for (const response of open) response.write('begun, ')
        },
        keys,
      )
      // 8 MiB are 32 responses of 256 KiB; the other 8 paths are requested twice.
      await expect.poll(() => callsFor(path), PATIENCE).toBe(keys + (keys - 32))
      for (const response of open) response.end('and ended')
      for (const response of await answers) expect(await response.text()).toMatch(/and ended$/)
      expect(callsFor(path)).toBe(keys + (keys - 32))
    })
  })

  describe('the first of several coalesced requests', () => {
    const host = { Host: 'gateway.test' }
    /** The same bytes from every caller; the headers in `own` reach no origin. */
    const text = (path: string, own = {}) =>
      `GET ${path} HTTP/1.1\r\n${Object.entries({ ...host, ...own })
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join('')}\r\n`

    test.each([
      ['leaves', {}],
      ['is cancelled silently', { 'X-User-Mortal': 'yes' }],
    ])('%s before the response: one other request calls the origin for all', async (_, own) => {
      const path = newPath()
      handler = hold
      const before = await entered()
      const first = await dial(gateway.port, text(path, own))
      await expect.poll(() => held.length, PATIENCE).toBe(1)
      // A request polls less often the longer it waits; staggered requests poll at different times.
      const others = Array.from({ length: 20 }, async (_, at) => {
        await sleep(at * 10)
        return exchange(gateway.port, text(path))
      })
      await expect.poll(entered, PATIENCE).toBe(before + 21)
      await sleep(800)
      // Answers at once, so that the second call ends before most requests poll.
      handler = serve
      first.resetAndDestroy()
      for (const { status, body } of await Promise.all(others)) {
        expect([status, body]).toEqual([200, JSON.stringify({ url: path })])
      }
      expect(callsFor(path)).toBe(2)
    })

    test.each([
      ['leaves', {}],
      ['has no waitUntil, and leaves', { 'X-User-Mortal': 'yes' }],
    ])('%s during the response: the others receive the complete response', async (_, own) => {
      const path = newPath()
      handler = hold
      const before = await entered()
      const first = await dial(gateway.port, text(path, own))
      await expect.poll(() => held.length, PATIENCE).toBe(1)
      const others = Array.from({ length: 5 }, () => exchange(gateway.port, text(path)))
      await expect.poll(entered, PATIENCE).toBe(before + 6)
      for (const [, response] of held) response.writeHead(200).write('begun, ')
      await once(first, 'data')
      first.resetAndDestroy()
      // Longer than workerd needs to detect it.
      await sleep(300)
      for (const [, response] of held) response.end('and ended')
      for (const { status, body } of await Promise.all(others)) {
        expect([status, body]).toEqual([200, 'begun, and ended'])
      }
      expect(callsFor(path)).toBe(1)
    })
  })

  describe('requests that the platform ended', () => {
    test('do not occupy the 8 MiB permanently', async () => {
      // The liveness timer stops, as after the platform has ended a request.
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
      try {
        let nowMs = 0
        const url = `http://127.0.0.1:${origin.port}`
        const shared = coalescedOrigin({ origin: createOrigin({ url }), now: () => nowMs })
        const send = (path: string, signal?: AbortSignal) => {
          const incoming = new Request(url + path, { ...(signal && { signal }) })
          const [headers, timeoutMs] = [new Map<string, string>(), 30_000]
          return shared.send({ incoming, headers, body: null, timeoutMs })
        }
        const path = newPath()
        handler = hold
        const leave = new AbortController()
        const leaders = Array.from({ length: 32 }, (_, at) => send(`${path}?${at}`))
        const followers = Array.from({ length: 32 }, (_, at) => send(`${path}?${at}`, leave.signal))
        await expect.poll(() => held.length, PATIENCE).toBe(32)
        for (const [, response] of held) response.writeHead(200).write('begun')
        await Promise.all(leaders)
        leave.abort()
        expect(new Set(await Promise.allSettled(followers).then(statuses))).toEqual(
          new Set(['rejected']),
        )

        nowMs += 4_000
        held = []
        const pair = [send(`${path}-then`), send(`${path}-then`)]
        await expect.poll(() => held.length, PATIENCE).toBe(1)
        releaseAll()
        const texts = await Promise.all(pair.map(async (answer) => (await answer).text()))
        expect(new Set(texts)).toEqual(new Set([JSON.stringify({ url: `${path}-then` })]))
        expect(callsFor(`${path}-then`)).toBe(1)
      } finally {
        vi.useRealTimers()
      }
    })
  })

  const statuses = (results: readonly PromiseSettledResult<unknown>[]) =>
    results.map(({ status }) => status)

  describe('an origin failure', () => {
    test('before the headers is reported to all requests, after one call', async () => {
      const path = newPath()
      handler = hold
      const responses = await together(
        50,
        () => fetchPath(path),
        () => {
          for (const [, response] of held) response.destroy()
        },
      )
      for (const response of responses) {
        expect([response.status, await response.text()]).toEqual([502, '{"fault":"unreachable"}'])
      }
      expect(callsFor(path)).toBe(1)
    })

    test('during a body breaks off the first response and is reported to the others, without another call', async () => {
      const path = newPath()
      handler = hold
      const outcomes = await together(
        10,
        async () => {
          const response = await fetchPath(path)
          return [response.status, await response.text().catch(() => 'broken')].join(' ')
        },
        () => {
          for (const [, response] of held) {
            response
              .writeHead(200, { 'content-length': 100 })
              .write('half', () => response.destroy())
          }
        },
      )
      const [others, first] = [Array(9).fill('502 {"fault":"unreachable"}'), '200 broken']
      expect(outcomes.sort()).toEqual([first, ...others])
      expect(callsFor(path)).toBe(1)
    })

    test('by timeout is reported to all requests at the deadline of the first, after one call', async () => {
      const path = newPath()
      const usual = gateway
      // Longer than a slow machine needs to send all of them: a later request would be another first one.
      gateway = await startGateway(origin.port, 3_000)
      try {
        handler = hold
        const responses = await Promise.all(Array.from({ length: 50 }, () => fetchPath(path)))
        for (const response of responses) {
          expect([response.status, await response.text()]).toEqual([502, '{"fault":"timeout"}'])
        }
        expect(callsFor(path)).toBe(1)
      } finally {
        await gateway.stop()
        gateway = usual
      }
    })

    test('by refused connections is reported to all requests', async () => {
      const usual = gateway
      gateway = await startGateway(await freePort())
      try {
        const responses = await Promise.all(Array.from({ length: 50 }, () => fetchPath('/refused')))
        expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([502]))
      } finally {
        await gateway.stop()
        gateway = usual
      }
    })
  })
})
