/** A stream through the gateway on Node. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mcp } from '../../../src/features/mcp/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { type Server, serve } from '../../../src/runtimes/node/index.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { dial } from '../../origin/wire.ts'

let redis: TestRedis
let origin: TestServer
let gateway: Server
let token: string
let open: ServerResponse

const stream = (response: ServerResponse): unknown => {
  open = response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  return open.flushHeaders()
}
let respond = stream

beforeAll(async () => {
  const key = await createKey('idp')
  token = await mint(key, { claims: { roles: ['user'] } })
  redis = await startTestRedis()
  origin = await startHttpServer((_, response) => void respond(response))
  gateway = await serve({
    policy: definePolicy({
      roles: { user: ['mcp:use'] },
      limits: {},
      routes: [...mcp({ path: '/mcp', permission: 'mcp:use', tools: {} })],
    }),
    port: 0,
    graceMs: 100,
    env: {
      REDIS_URL: redis.redisUrl,
      REDIS_TIMEOUT_MS: '5000',
      // Otherwise events are written to the output.
      AUDIT_STREAM: 'redis',
      PUBLIC_URL: 'https://gateway.test',
      ORIGIN_URL: origin.url,
      SIGNING_KEYS: JSON.stringify({ keys: [key.privateJwk] }),
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
      ]),
    },
  })
})
afterAll(async () => {
  await gateway?.close()
  await origin?.close()
  await redis?.close()
})

test('a stream begins before its first event, and ends with its client', async () => {
  const client = new AbortController()
  const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' }
  const response = await fetch(`${gateway.url}/mcp`, { headers, signal: client.signal })
  expect([response.status, response.headers.get('Content-Type')]).toEqual([
    200,
    'text/event-stream',
  ])
  const closed = once(open, 'close')
  client.abort()
  await closed
})

test.each(['application/json', 'text/event-stream'])(
  'a list in %s without an end ends at the server when its client leaves',
  async (type) => {
    let opened: () => void = () => {}
    const arrived = new Promise<void>((resolve) => {
      opened = resolve
    })
    respond = (response) => {
      open = response.writeHead(200, { 'Content-Type': type })
      open.flushHeaders()
      opened()
    }
    const client = new AbortController()
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const body = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    const init = { method: 'POST', headers, body, signal: client.signal }
    const answered = fetch(`${gateway.url}/mcp`, init).catch(() => {})
    await arrived
    const closed = once(open, 'close')
    client.abort()
    await closed
    await answered
    respond = stream
  },
)

test('the JSON result of a call passes', async () => {
  respond = (response) =>
    response
      .setHeader('Content-Type', 'application/json')
      .end('{"jsonrpc":"2.0","id":1,"result":{}}')
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
  const response = await fetch(`${gateway.url}/mcp`, { method: 'POST', headers, body })
  expect(await response.json()).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
  respond = stream
})

test('events pass one by one', async () => {
  const client = new AbortController()
  const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' }
  const response = await fetch(`${gateway.url}/mcp`, { headers, signal: client.signal })
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  for (const n of [1, 2]) {
    open.write(`data: {"jsonrpc":"2.0","method":"n${n}"}\n\n`)
    const { value } = await reader.read()
    expect(new TextDecoder().decode(value)).toBe(`data: {"jsonrpc":"2.0","method":"n${n}"}\n\n`)
  }
  client.abort()
})

test('the refusal of a list has no length and no coding of the server, on a connection that is kept [S85]', async () => {
  respond = (response) => {
    const headers = {
      'Content-Type': 'application/json',
      'Content-Encoding': 'gzip',
      'Content-Length': '5',
      ETag: '"server"',
      'X-Of-Server': 'yes',
    }
    response.writeHead(200, headers).end('12345')
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const head = [
    'POST /mcp HTTP/1.1',
    'Host: gateway.test',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    'MCP-Protocol-Version: 2025-11-25',
    `Content-Length: ${body.length}`,
  ]
  const socket = await dial(Number(new URL(gateway.url).port), '')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk
  })
  const request = `${head.join('\r\n')}\r\n\r\n${body}`
  // The client of a kept connection finds the end of the first response, or the second is not sent.
  for (const count of [1, 2]) {
    socket.write(request)
    await expect.poll(() => responsesIn(text).length).toBe(count)
  }
  socket.destroy()
  for (const { headers, document } of responsesIn(text)) {
    expect(headers).toMatch(/^HTTP\/1\.1 502 /)
    expect(headers).not.toMatch(/content-encoding|etag|x-of-server/i)
    expect(document).toMatchObject({ error: { data: { code: 'origin_unreachable' } } })
  }
})

/** The complete responses at the begin of a text, by their `Content-Length`. */
function responsesIn(text: string): { headers: string; document: unknown }[] {
  const found: { headers: string; document: unknown }[] = []
  for (let rest = text; ; ) {
    const at = rest.indexOf('\r\n\r\n')
    const headers = rest.slice(0, Math.max(at, 0))
    const length = Number(/^content-length: (\d+)/im.exec(headers)?.[1] ?? Number.NaN)
    const end = at + 4 + length
    if (at < 0 || !(rest.length >= end)) return found
    found.push({ headers, document: JSON.parse(rest.slice(at + 4, end)) })
    rest = rest.slice(end)
  }
}
