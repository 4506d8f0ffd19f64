import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ISSUER } from '../../harness/issuer.ts'
import { call, type McpGateway, messagesIn, request, startMcpGateway } from './gateway.ts'

const NO_MESSAGE = 'The MCP server sent an event that is not one JSON-RPC message.'

let gateway: McpGateway
/** The response of the server that is open. */
let open: ServerResponse
let closed: Promise<void>

beforeAll(async () => {
  gateway = await startMcpGateway()
})
afterAll(() => gateway?.close())
beforeEach(() => {
  gateway.reset()
  gateway.respondWith((_, response) => {
    open = response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    closed = new Promise((resolve) => response.on('close', () => resolve()))
    open.flushHeaders()
  })
})

const note = (n: number) => ({ jsonrpc: '2.0', method: 'notifications/message', params: { n } })

/** Returns the rest of a stream, whether it ends or breaks off. */
async function restOf(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text
    text += decoder.decode(value, { stream: true })
  }
}
const textOf = (value: Uint8Array | undefined) => new TextDecoder().decode(value)

async function openStream(headers = {}) {
  const response = await gateway.send('', { Accept: 'text/event-stream', ...headers }, 'GET')
  expect(response.status).toBe(200)
  expect(response.headers.get('Content-Type')).toBe('text/event-stream')
  return (response.body as ReadableStream<Uint8Array>).getReader()
}

/** Sends a text as the whole stream, and returns what the client gets. */
async function passed(text: string | Uint8Array): Promise<string> {
  gateway.respondWith((_, response) =>
    response.setHeader('Content-Type', 'text/event-stream').end(text),
  )
  return (await gateway.send(call('list_shelves'))).text()
}

describe('the stream of a server', () => {
  test('each event arrives while the stream is open', async () => {
    const reader = await openStream()
    for (const n of [1, 2, 3]) {
      open.write(`event: message\nretry: 10\ndata: ${JSON.stringify(note(n))}\n\n`)
      const { value } = await reader.read()
      expect(textOf(value)).toBe(`event: message\nretry: 10\ndata: ${JSON.stringify(note(n))}\n\n`)
    }
    open.end()
    expect((await reader.read()).done).toBe(true)
  })

  test('a client that leaves ends the stream of the server', async () => {
    const reader = await openStream()
    await reader.cancel()
    await closed
  })

  test('it ends when the token of the caller expires', async () => {
    // On a slow machine, the token may expire before the stream is open or the event is sent.
    for (const lifeSeconds of [2, 10, 40]) {
      const exp = Math.floor(Date.now() / 1000) + lifeSeconds
      const hasExpired = () => Date.now() >= exp * 1_000
      const reader = await openStream({
        Authorization: `Bearer ${await gateway.token('alice', ['reader'], { exp })}`,
      }).catch((error) => {
        if (!hasExpired()) throw error
      })
      if (reader === undefined) continue
      const text = `data: ${JSON.stringify(note(1))}\n\n`
      await new Promise((resolve) => open.write(text, resolve))
      const isLate = hasExpired()
      const messages = messagesIn(await restOf(reader))
      expect(hasExpired()).toBe(true)
      await closed
      if (isLate && messages.length === 0) continue
      expect(messages).toEqual([note(1)])
      return
    }
    throw new Error('no event arrived before the token expired')
  })

  test('it ends when the caller is revoked, on its other streams too [S79]', async () => {
    const headers = { Authorization: `Bearer ${await gateway.token('mallory')}` }
    const first = await openStream(headers)
    const server = closed
    const second = await openStream(headers)
    await gateway.revocations.revokeBefore({
      kind: 'subject',
      issuer: ISSUER,
      value: 'mallory',
      atSeconds: Math.floor(Date.now() / 1000) + 1,
      ttlSeconds: 600,
    } as never)
    await Promise.all([restOf(first), restOf(second), server, closed])
    expect((await gateway.send(call('list_shelves'), headers)).status).toBe(401)
  })

  test('the stream of a caller who is not revoked stays open', async () => {
    const reader = await openStream()
    // Longer than the time between two checks.
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    open.write(`data: ${JSON.stringify(note(1))}\n\n`)
    expect(messagesIn(textOf((await reader.read()).value))).toEqual([note(1)])
    await reader.cancel()
  })

  test('it ends if Redis cannot decide whether the caller is still admitted', async () => {
    const reader = await openStream()
    gateway.redis.setAnswering(false)
    try {
      expect(await restOf(reader)).toBe('')
      await closed
    } finally {
      gateway.redis.setAnswering(true)
    }
  })
})

describe('events', () => {
  const one = JSON.stringify(note(1))
  const two = JSON.stringify(note(2))

  test.each([
    ['LF', '\n'],
    ['CR', '\r'],
    ['CRLF', '\r\n'],
  ])('lines may end in %s', async (_, end) => {
    const text = await passed(`data: ${one}${end}${end}data: ${two}${end}${end}`)
    expect(text).toBe(`data: ${one}\n\ndata: ${two}\n\n`)
  })

  test('parts of an event may arrive in any number of bytes', async () => {
    const bytes = Buffer.from(`\ufeffid: ä\r\ndata: ${one}\r\n\r\n: ping\r\n\r\n`)
    gateway.respondWith(async (_, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      for (const byte of bytes) {
        response.write(Buffer.from([byte]))
        await new Promise((resolve) => setImmediate(resolve))
      }
      response.end()
    })
    const text = await (await gateway.send(call('list_shelves'))).text()
    expect(text).toMatch(/^id: [\w-]{43}\.ä\ndata: \{.*\}\n\n:\n\n$/)
  })

  test('an event that primes the client keeps its id and its empty data', async () => {
    expect(await passed('id: e1\nretry: 500\ndata:\n\n')).toMatch(
      /^id: [\w-]{43}\.e1\nretry: 500\ndata: \n\n$/,
    )
  })

  test('a list that is hidden behind CR, LF or a second field is filtered', async () => {
    const hidden = { jsonrpc: '2.0', id: 1, result: { tools: [{ name: 'drop_everything' }] } }
    const [head, tail] = JSON.stringify(hidden).split('"result"') as [string, string]
    for (const text of [
      `data: ${head}\rdata: "result"${tail}\r\r`,
      `data: ${head}\ndata: "result"${tail}\n\n`,
      `:x\rdata:${head}\n: a comment\r\ndata:"result"${tail}\n\r`,
      `id: 1\rid: 2\nevent: message\ndata: ${JSON.stringify(hidden)}\n\n`,
    ]) {
      const result = await passed(text)
      expect(result).not.toContain('drop_everything')
      expect(messagesIn(result)[0].result).toEqual({ tools: [] })
    }
  })

  test('fields that would begin a new line are values, and unknown ones are left out', async () => {
    const text = await passed(`id: a\0b\nretry: 1x\nother: x\ndata: ${one}\n\n`)
    expect(text).toBe(`data: ${one}\n\n`)
  })

  test('events of other types are left out', async () => {
    expect(await passed(`event: endpoint\ndata: /other\n\ndata: ${one}\n\n`)).toBe(
      `data: ${one}\n\n`,
    )
  })

  test('an event without its end is left out', async () => {
    expect(await passed(`data: ${one}\n\ndata: ${two}\n`)).toBe(`data: ${one}\n\n`)
  })

  test.each([
    ['is larger than the maximum', `data: "${'x'.repeat(70_000)}"\n\n`],
    ['never ends', `data: ${'x'.repeat(70_000)}`],
    ['has many lines', 'data: x\n'.repeat(20_000)],
    ['is no JSON', 'data: {\n\n'],
    ['has a name twice', `data: {"jsonrpc":"2.0","id":1,"result":{},"result":{"tools":[]}}\n\n`],
    ['is a batch', `data: [${one}]\n\n`],
    ['is not UTF-8', Buffer.from([0x64, 0xff, 0x0a])],
    [
      'is a request with an id that is no text',
      'data: {"jsonrpc":"2.0","id":{},"method":"ping"}\n\n',
    ],
    [
      'is a request with a long id',
      `data: {"jsonrpc":"2.0","id":"${'i'.repeat(300)}","method":"ping"}\n\n`,
    ],
  ])(
    'a stream that begins with an event that %s is answered with 502 and a reason',
    async (_, text) => {
      gateway.respondWith((_, response) =>
        response.setHeader('Content-Type', 'text/event-stream').end(text),
      )
      const response = await gateway.send(call('list_shelves'))
      expect(response.status).toBe(502)
      expect(await response.json()).toMatchObject({
        id: 1,
        error: { message: NO_MESSAGE, data: { code: 'origin_unreachable' } },
      })
    },
  )

  test.each(['json', 'events'] as const)(
    'a list that is a batch has the same answer, sent as %s',
    async (as) => {
      gateway.answerWith(() => [JSON.parse(one)], as)
      const response = await gateway.send(request('tools/list'))
      expect(response.status).toBe(502)
      expect(await response.json()).toMatchObject({ error: { message: NO_MESSAGE } })
    },
  )

  test.each([
    ['no JSON', 'data: {\n\n'],
    ['a batch', `data: [${one}]\n\n`],
    ['too large', `data: "${'x'.repeat(70_000)}"\n\n`],
  ])(
    'after the first event, one that is %s ends the stream with an error for the request',
    async (_, bad) => {
      gateway.respondWith(async (_, response) => {
        response.setHeader('Content-Type', 'text/event-stream').write(`data: ${one}\n\n`)
        await new Promise((resolve) => setTimeout(resolve, 20))
        response.end(bad)
      })
      const response = await gateway.send(call('list_shelves', {}, 'q-1'))
      expect(response.status).toBe(200)
      expect(messagesIn(await response.text())).toEqual([
        note(1),
        {
          jsonrpc: '2.0',
          id: 'q-1',
          error: {
            code: -32_000,
            message: NO_MESSAGE,
            data: { code: 'origin_unreachable', requestId: expect.any(String) },
          },
        },
      ])
    },
  )

  test('a request that was answered gets no error when the stream ends', async () => {
    const answer = { jsonrpc: '2.0', id: 1, result: {} }
    gateway.respondWith(async (_, response) => {
      response.setHeader('Content-Type', 'text/event-stream')
      response.write(`data: ${JSON.stringify(answer)}\n\n`)
      await new Promise((resolve) => setTimeout(resolve, 20))
      response.end('data: {\n\n')
    })
    await expect((await gateway.send(call('list_shelves'))).text()).rejects.toThrow()
  })
})

describe('the version of the protocol that a server negotiates', () => {
  const initialize = request('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  })
  const answering = (protocolVersion: string, as: 'json' | 'events') =>
    gateway.answerWith(
      ({ id }) => ({ jsonrpc: '2.0', id, result: { protocolVersion, capabilities: {} } }),
      as,
    )

  test.each(['json', 'events'] as const)('passes if the route lists it, in %s', async (as) => {
    answering('2024-11-05', as)
    const response = await gateway.send(initialize)
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('2024-11-05')
    gateway.answerWith(({ id }) => ({ jsonrpc: '2.0', id, result: {} }))
    const next = await gateway.send(request('ping'), { 'MCP-Protocol-Version': '2024-11-05' })
    expect(next.status).toBe(200)
  })

  test.each(['json', 'events'] as const)(
    'is refused at initialize, with the name of the setting, if the route does not list it, in %s',
    async (as) => {
      answering('2024-10-07', as)
      const response = await gateway.send(initialize)
      expect(response.status).toBe(502)
      expect(await response.json()).toMatchObject({
        error: {
          message:
            'The MCP server negotiated 2024-10-07, which the setting `versions` of this route does not list.',
        },
      })
    },
  )

  test('is named in the refusal of a later request', async () => {
    const response = await gateway.send(request('ping'), { 'MCP-Protocol-Version': '2024-10-07' })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringContaining('`versions`') },
    })
  })
})
