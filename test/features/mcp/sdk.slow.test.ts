import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { createKey, ISSUER, mint, type TestKey } from '../../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { type Running, startWorkerd } from '../../origin/workerd.ts'

const PUBLIC_URL = 'https://gateway.test'
const SDK = join(import.meta.dirname, 'sdk')

let redis: TestRedis
let key: TestKey
let mcpPort: string
const closers: (() => unknown)[] = []

beforeAll(async () => {
  key = await createKey('idp')
  redis = await startTestRedis()
  const server = spawn(process.execPath, [join(SDK, 'server.mjs')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  closers.push(
    () => server.kill(),
    () => redis.close(),
  )
  const [line] = await once(server.stdout, 'data')
  mcpPort = String(line).trim()
})
afterAll(async () => {
  for (const close of closers) await close()
})

async function startGateway(guard: 'yes' | 'no'): Promise<Running> {
  const gateway = await startWorkerd({
    entry: join(SDK, 'gateway.ts'),
    vars: {
      ...redisVars(redis),
      PUBLIC_URL,
      SIGNING_KEYS: JSON.stringify({ keys: [key.privateJwk] }),
      ORIGIN_URL: `http://127.0.0.1:${mcpPort}`,
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: PUBLIC_URL, jwks: { keys: [key.publicJwk] } },
      ]),
      GUARD: guard,
    },
  })
  closers.unshift(() => gateway.stop())
  return gateway
}

const ANSWERS = [
  {
    name: 'ask_client',
    returned: {
      sample: { type: 'text', text: 'hello' },
      input: { action: 'accept', content: { name: 'Alice' } },
      roots: [{ uri: 'file:///home/alice', name: 'home' }],
      pong: {},
    },
  },
  {
    name: 'ask_refusing_client',
    returned: { code: -32603, message: expect.stringContaining('the user is absent') },
  },
]

async function converse(url: string, token: string) {
  const program = [join(SDK, 'client.mjs'), url, token]
  const { stdout } = await promisify(execFile)(process.execPath, program, { timeout: 120_000 })
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

test('the SDK works without a gateway: sampling, elicitation, roots, ping', async () => {
  expect(await converse(`http://127.0.0.1:${mcpPort}/mcp`, 'none')).toEqual(ANSWERS)
})

test.each(['no', 'yes'] as const)(
  'a server of the SDK calls a client of the SDK through the gateway (guards: %s) [S63]',
  async (guard) => {
    const gateway = await startGateway(guard)
    const token = await mint(key, { claims: { aud: PUBLIC_URL, roles: ['user'] } })
    expect(await converse(`http://127.0.0.1:${gateway.port}/mcp`, token)).toEqual(ANSWERS)
  },
)

test('a response from a client without the permission of the route does not reach the server [S63]', async () => {
  const gateway = await startGateway('yes')
  const token = await mint(key, { claims: { aud: PUBLIC_URL, roles: ['guest'] } })
  const countOf = async () => (await fetch(`http://127.0.0.1:${mcpPort}/count`)).text()
  const before = await countOf()
  const response = await fetch(`http://127.0.0.1:${gateway.port}/mcp`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: '{"jsonrpc":"2.0","id":99,"result":{}}',
  })
  expect([response.status, (await response.json()) as object]).toEqual([
    403,
    expect.objectContaining({
      error: expect.objectContaining({
        data: expect.objectContaining({ code: 'insufficient_permission' }),
      }),
    }),
  ])
  expect(await countOf()).toBe(before)
})

/** Begins a session, and returns the stream of the server. */
async function openStream(claims: object): Promise<Response> {
  const gateway = await startGateway('yes')
  const url = `http://127.0.0.1:${gateway.port}/mcp`
  const token = await mint(key, { claims: { aud: PUBLIC_URL, roles: ['user'], ...claims } })
  const headers = {
    Authorization: `Bearer ${token}`,
    Accept: 'application/json, text/event-stream',
    'Content-Type': 'application/json',
  }
  const begun = await fetch(url, {
    method: 'POST',
    headers,
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'test', version: '1' },
      },
    }),
  })
  expect(await begun.text()).toContain('"protocolVersion":"2025-11-25"')
  const session = begun.headers.get('Mcp-Session-Id') ?? ''
  const stream = await fetch(url, { headers: { ...headers, 'Mcp-Session-Id': session } })
  expect([stream.status, stream.headers.get('Content-Type')]).toEqual([200, 'text/event-stream'])
  return stream
}

test('on workerd, a stream ends when the token expires [S79]', async () => {
  const stream = await openStream({ exp: Math.floor(Date.now() / 1000) + 4 })
  expect(await stream.text()).toBe('')
})

test('on workerd, a stream ends when the caller is revoked [S79]', async () => {
  const stream = await openStream({ sub: 'mallory' })
  const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
  await createRevocations(rest, Date.now).revokeBefore({
    kind: 'subject',
    issuer: ISSUER,
    value: 'mallory',
    atSeconds: Math.floor(Date.now() / 1000) + 1,
    ttlSeconds: 600,
  })
  expect(await stream.text()).toBe('')
})
