import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Denied, Misconfigured, Unavailable } from '../../src/errors.ts'
import { isRead } from '../../src/origin/early-body.ts'
import { createOrigin } from '../../src/origin/origin.ts'
import { freePort } from '../harness/process.ts'
import { type Listening, startHttpOrigin, startTcpOrigin } from './origin-server.ts'

/** A request with a URL that no parser has changed, as workerd provides it. */
function incoming(url: string, init: RequestInit = {}): Request {
  const request = new Request('http://gateway.test/', init)
  return new Proxy(request, {
    get: (target, name) => (name === 'url' ? url : Reflect.get(target, name, target)),
  })
}

const send = (url: string, target: string, timeoutMs = 5_000, init: RequestInit = {}) =>
  createOrigin({ url }).send({
    incoming: incoming(target, init),
    headers: new Map<string, string>(),
    body: null,
    timeoutMs,
  })

describe('createOrigin', () => {
  test.each([
    {},
    { url: 'not a url' },
    { url: 'ftp://origin.test' },
    { url: 'https://user:secret@origin.test' },
    { url: 'https://origin.test?key=secret' },
    { url: 'https://origin.test/#a' },
  ])('refuses %j without repeating it in the message [R31]', (options) => {
    let thrown: unknown
    try {
      createOrigin(options)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toBeInstanceOf(Misconfigured)
    expect(String(thrown)).not.toContain('secret')
  })

  test('calls a binding instead of the network, below the base path', async () => {
    const called: string[] = []
    const fetched: typeof fetch = async (url) => {
      called.push(String(url))
      return new Response('ok')
    }
    const request = { headers: new Map<string, string>(), body: null, timeoutMs: 5_000 }
    const target = incoming('http://gateway.test/a?b')
    await createOrigin({ binding: { fetch: fetched } }).send({ ...request, incoming: target })
    await createOrigin({ url: 'https://api.test/v2/', binding: { fetch: fetched } }).send({
      ...request,
      incoming: target,
    })
    expect(called).toEqual(['https://origin/a?b', 'https://api.test/v2/a?b'])
  })
})

test.each([
  [131_072, true],
  [131_073, false],
])('a response with %d bytes of header fields from a binding', async (bytes, isTaken) => {
  let isCancelled = false
  const cancel = () => {
    isCancelled = true
  }
  const fetched = async () =>
    new Response(new ReadableStream({ cancel }), { headers: { 'x-a': 'y'.repeat(bytes - 3) } })
  const sent = createOrigin({ binding: { fetch: fetched } }).send({
    incoming: incoming('http://gateway.test/'),
    headers: new Map<string, string>(),
    body: null,
    timeoutMs: 5_000,
  })
  if (isTaken) expect((await sent).status).toBe(200)
  else await expect(sent).rejects.toMatchObject({ dependency: 'origin', fault: 'too_large' })
  expect(isCancelled).toBe(!isTaken)
})

describe('a response of a binding in the same process', () => {
  const answer = (...chunks: (string | Error)[]) =>
    createOrigin({
      binding: {
        async fetch() {
          const body = new ReadableStream<Uint8Array>({
            pull(controller) {
              const chunk = chunks.shift()
              if (chunk === undefined) controller.close()
              else if (chunk instanceof Error) controller.error(chunk)
              else controller.enqueue(new TextEncoder().encode(chunk))
            },
          })
          return new Response(body, { headers: { 'Content-Length': '5' } })
        },
      },
    }).send({
      incoming: incoming('http://gateway.test/'),
      headers: new Map<string, string>(),
      body: null,
      timeoutMs: 5_000,
      readsEarly: true,
    })

  test('is read before its header if its end is there', async () => {
    const whole = await answer('hello')
    expect([isRead(whole), await whole.text()]).toEqual([true, 'hello'])
  })

  test('keeps what comes after its declared length', async () => {
    const longer = await answer('hello', ' world')
    expect([isRead(longer), await longer.text()]).toEqual([false, 'hello world'])
    const failing = await answer('hello', new Error('lost'))
    expect(isRead(failing)).toBe(false)
    await expect(failing.text()).rejects.toThrow('lost')
  })
})

test.each<readonly [string, (reader: ReadableStreamDefaultReader) => unknown, object]>([
  ['the origin', (reader) => reader.cancel(), { dependency: 'origin', fault: 'unreachable' }],
  ['the client', () => {}, { denial: { code: 'malformed_request', check: 'body_incomplete' } }],
])('a body that ends early because of %s', async (_, leave, error) => {
  let fail = (_: unknown): void => {}
  const body = new ReadableStream<Uint8Array>({
    pull: () => new Promise<void>((_, reject) => (fail = reject)),
  })
  const binding = {
    async fetch(_: string, init: RequestInit): Promise<Response> {
      const reader = (init.body as ReadableStream).getReader()
      const reading = reader.read().catch(() => {})
      // The source is pulled once the stream has started.
      await new Promise((resolve) => setImmediate(resolve))
      await leave(reader)
      await new Promise((resolve) => setImmediate(resolve))
      fail(new Error('connection lost'))
      await reading
      await new Promise((resolve) => setImmediate(resolve))
      throw new TypeError('fetch failed')
    },
  }
  const request = { incoming: incoming('http://gateway.test/'), timeoutMs: 5_000, body }
  const sent = createOrigin({ binding }).send({ ...request, headers: new Map<string, string>() })
  await expect(sent).rejects.toMatchObject(error)
})

describe('the authority of a request', () => {
  let origin: Awaited<ReturnType<typeof startHttpOrigin>>
  let canary: Awaited<ReturnType<typeof startHttpOrigin>>
  beforeAll(async () => {
    origin = await startHttpOrigin((_, response) => response.end('origin'))
    canary = await startHttpOrigin((_, response) => response.end('canary'))
  })
  afterAll(() => Promise.all([origin.close(), canary.close()]))

  test('is the configured one, whatever the request target is [S57]', async () => {
    const evil = `127.0.0.1:${canary.port}`
    const targets = [
      `http://gateway.test//${evil}/x`,
      `http://gateway.test///${evil}/x`,
      `http://gateway.test/\\${evil}/x`,
      `http://gateway.test/http://${evil}/x`,
      `http://gateway.test/@${evil}/x`,
      `http://gateway.test/x?url=http://${evil}/`,
      `http://${evil}/x`,
    ]
    for (const target of targets) {
      const answer = await send(`http://127.0.0.1:${origin.port}`, target)
      expect(await answer.text(), target).toBe('origin')
    }
    for (const target of [`http://gateway.test@${evil}/x`, 'http://h*', 'http://h?a', 'http://h']) {
      await expect(send(`http://127.0.0.1:${origin.port}`, target)).rejects.toBeInstanceOf(Denied)
    }
    expect(origin.requests).toHaveLength(targets.length)
    expect(canary.requests).toHaveLength(0)
  })

  test('is not changed by a redirect [S58]', async () => {
    const redirecting = await startHttpOrigin((_, response) => {
      response.writeHead(302, { Location: `http://127.0.0.1:${canary.port}/` }).end()
    })
    const answer = await send(`http://127.0.0.1:${redirecting.port}`, 'http://gateway.test/')
    expect(answer.status).toBe(302)
    expect(canary.requests).toHaveLength(0)
    await redirecting.close()
  })
})

/** Only the runtime of Workers reads bodies early. Node has the same streams. */
describe.each([
  ['at once', 0],
  ['late', 100],
])('a short body that is read before its response, of a header that comes %s', (_, headerMs) => {
  const LENGTH = 20
  let release: (text?: string) => void
  let left: Promise<unknown>
  let origin: Awaited<ReturnType<typeof startHttpOrigin>>
  let declared: string
  beforeAll(async () => {
    origin = await startHttpOrigin((_, response) => {
      left = once(response, 'close')
      release = (text) => (text === undefined ? response.destroy() : response.end(text))
      setTimeout(() => {
        response.strictContentLength = false
        response.writeHead(200, { 'Content-Length': declared }).flushHeaders()
      }, headerMs)
    })
  })
  afterAll(() => origin.close())

  const open = (length: string = `${LENGTH}`) => {
    declared = length
    return createOrigin({ url: `http://127.0.0.1:${origin.port}` }).send({
      incoming: incoming('http://gateway.test/'),
      headers: new Map<string, string>(),
      body: null,
      timeoutMs: 5_000,
      readsEarly: true,
    })
  }

  test('does not delay the header until it arrives, and arrives whole', async () => {
    const answer = await open()
    expect(isRead(answer)).toBe(false)
    release('x'.repeat(LENGTH))
    expect(await answer.text()).toBe('x'.repeat(LENGTH))
  })

  test('fails after the header if it breaks off', async () => {
    const answer = await open()
    release()
    await expect(answer.text()).rejects.toThrow()
  })

  test('ends at the origin if the client does not read it', async () => {
    const answer = await open()
    await answer.body?.cancel()
    await left
  })
})

test('a short body that arrives with its header is read, and a long one streams', async () => {
  const whole = await startHttpOrigin(({ url }, response) => {
    const body = Buffer.alloc(Number(url?.slice(1)), 'x')
    response.writeHead(200, { 'Content-Length': body.length }).end(body)
  })
  const sent = (bytes: number) =>
    createOrigin({ url: `http://127.0.0.1:${whole.port}` }).send({
      incoming: incoming(`http://gateway.test/${bytes}`),
      headers: new Map<string, string>(),
      body: null,
      timeoutMs: 5_000,
      readsEarly: true,
    })
  for (const [bytes, read] of [
    [20, true],
    [4_096, true],
    [16_385, false],
    [0, false],
  ] as const) {
    const answer = await sent(bytes)
    expect(isRead(answer), `${bytes}`).toBe(read)
    expect(await answer.text()).toHaveLength(bytes)
  }
  await whole.close()
})

describe('an origin failure', () => {
  const open: Listening[] = []
  afterAll(() => Promise.all(open.map((origin) => origin.close())))

  async function fault(url: string, timeoutMs?: number): Promise<unknown> {
    const error = await send(url, 'http://gateway.test/', timeoutMs).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(Unavailable)
    expect((error as Unavailable).dependency).toBe('origin')
    return (error as Unavailable).fault
  }

  test('a refused connection, an unknown host and a missing TLS are unreachable [R23]', async () => {
    expect(await fault(`http://127.0.0.1:${await freePort()}`)).toBe('unreachable')
    expect(await fault('http://origin.invalid')).toBe('unreachable')
    const plain = await startHttpOrigin((_, response) => response.end())
    open.push(plain)
    expect(await fault(`https://127.0.0.1:${plain.port}`)).toBe('unreachable')
    expect(plain.requests).toHaveLength(0)
  })

  test('silence past the deadline is a timeout, after one call [R24]', async () => {
    const silent = await startHttpOrigin(() => {})
    open.push(silent)
    expect(await fault(`http://127.0.0.1:${silent.port}`, 50)).toBe('timeout')
    expect(silent.requests).toHaveLength(1)
  })

  test.each([
    ['nothing', ''],
    ['invalid HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
    ['half of the headers', 'HTTP/1.1 200 OK\r\nContent-'],
    ['an invalid status', 'HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n'],
  ])(
    'an origin that sends %s never counts as a response, and is called once [R25]',
    async (_, text) => {
      const malformed = await startTcpOrigin((socket) => socket.end(text))
      open.push(malformed)
      expect(await fault(`http://127.0.0.1:${malformed.port}`)).toMatch(
        /^(?:unreachable|malformed)$/,
      )
      expect(malformed.received).toHaveLength(1)
    },
  )

  test('a client that left is not counted as a fault of the origin [R24]', async () => {
    const silent = await startHttpOrigin(() => {})
    open.push(silent)
    const left = new AbortController()
    left.abort()
    const sent = send(`http://127.0.0.1:${silent.port}`, 'http://gateway.test/', 5_000, {
      signal: left.signal,
    })
    await expect(sent).rejects.toMatchObject({
      denial: { code: 'malformed_request', check: 'client_gone' },
    })
  })
})
