/** Streams of the revision 2026-07-28: a client and a server of the SDK, version 2, on each runtime. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { createKey, ISSUER, mint, type TestKey } from '../../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { startWorkerd } from '../../origin/workerd.ts'
import { policyOf } from './sdk/policy.ts'

const PUBLIC_URL = 'https://gateway.test'
const REVISION = '2026-07-28'

let redis: TestRedis
let key: TestKey
let server: TestServer
/** The methods of the messages that reached the server, and those of its streams that are open. */
const received: string[] = []
const open = new Set<string>()

const handler = createMcpHandler(() => {
  const books = new McpServer(
    { name: 'books', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true } } },
  )
  // Reports progress, and ends only with its caller.
  books.registerTool('watch', {}, async ({ mcpReq }) => {
    const { progressToken } = mcpReq._meta ?? {}
    await mcpReq.notify({
      method: 'notifications/progress',
      params: { progressToken: progressToken ?? 0, progress: 1 },
    })
    await new Promise((resolve) => mcpReq.signal.addEventListener('abort', resolve))
    return { content: [] }
  })
  return books
})

beforeAll(async () => {
  key = await createKey('idp')
  redis = await startTestRedis()
  server = await startHttpServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { method } = JSON.parse(body) as { method: string }
    received.push(method)
    open.add(method)
    const left = new AbortController()
    response.on('close', () => {
      open.delete(method)
      left.abort()
    })
    const answer = await handler.fetch(
      new Request(`http://localhost${request.url}`, {
        method: 'POST',
        headers: request.headers as Record<string, string>,
        body,
        signal: left.signal,
      }),
    )
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.flushHeaders()
    for await (const chunk of answer.body ?? []) response.write(chunk)
    response.end()
  })
})
afterAll(async () => {
  await handler.close()
  await server?.close()
  await redis?.close()
})

async function startOn(runtime: 'Node' | 'workerd') {
  const vars = {
    PUBLIC_URL,
    ORIGIN_URL: server.url,
    SIGNING_KEYS: JSON.stringify({ keys: [key.privateJwk] }),
    ISSUERS: JSON.stringify([
      // A stream ends at `exp`. Without a tolerance, so does the token.
      {
        issuer: ISSUER,
        audience: PUBLIC_URL,
        jwks: { keys: [key.publicJwk] },
        clockTolerance: 0,
      },
    ]),
  }
  if (runtime === 'workerd') {
    const entry = 'test/features/mcp/sdk/gateway.ts'
    const { port, stop } = await startWorkerd({
      entry,
      vars: { ...vars, ...redisVars(redis), GUARD: 'yes' },
    })
    return { url: `http://127.0.0.1:${port}/mcp`, close: stop }
  }
  const { url, close } = await serve({
    policy: policyOf(true),
    port: 0,
    graceMs: 100,
    // Otherwise events are written to the output.
    env: { ...vars, REDIS_URL: redis.redisUrl, REDIS_TIMEOUT_MS: '5000', AUDIT_STREAM: 'redis' },
  })
  return { url: `${url}/mcp`, close }
}

describe.each(['Node', 'workerd'] as const)(`streams of ${REVISION} on %s`, (runtime) => {
  let gateway: Awaited<ReturnType<typeof startOn>>
  beforeAll(async () => {
    gateway = await startOn(runtime)
  })
  afterAll(() => gateway?.close())

  async function connect(claims: object) {
    const token = await mint(key, { claims: { aud: PUBLIC_URL, roles: ['user'], ...claims } })
    const client = new Client(
      { name: 'test', version: '1.0.0' },
      { versionNegotiation: { mode: { pin: REVISION } } },
    )
    const headers = { Authorization: `Bearer ${token}` }
    await client.connect(
      new StreamableHTTPClientTransport(new URL(gateway.url), { requestInit: { headers } }),
    )
    return client
  }

  /** Opens a subscription and a call. Both have sent something when this returns. */
  async function openStreams(client: Client) {
    const changed = Promise.withResolvers<void>()
    client.setNotificationHandler('notifications/tools/list_changed', () => changed.resolve())
    const subscription = await client.listen({ toolsListChanged: true })
    expect(subscription.honoredFilter).toEqual({ toolsListChanged: true })
    handler.notify.toolsChanged()
    await changed.promise
    const progress = Promise.withResolvers<void>()
    const call = client.callTool(
      { name: 'watch', arguments: {} },
      { onprogress: () => progress.resolve(), timeout: 120_000 },
    )
    const failed = expect(call).rejects.toThrow()
    await progress.promise
    expect([...open].sort()).toEqual(['subscriptions/listen', 'tools/call'])
    return { closed: subscription.closed, failed }
  }

  async function expectEnded(
    client: Client,
    { closed, failed }: Awaited<ReturnType<typeof openStreams>>,
  ) {
    expect(await closed).toBe('remote')
    await failed
    await expect.poll(() => [...open]).toEqual([])
    const before = received.length
    await expect(client.listTools()).rejects.toThrow()
    await expect(client.listen({ toolsListChanged: true })).rejects.toThrow()
    expect(received).toHaveLength(before)
    await client.close()
  }

  /** Opens streams with a token that expires soon, but not before both are open. No other failure is repeated. */
  async function openExpiring() {
    let cause: unknown
    for (const lifeSeconds of [4, 15, 60]) {
      const exp = Math.floor(Date.now() / 1000) + lifeSeconds
      const connected = connect({ exp })
      const opening = connected
        .then(async (client) => ({ client, streams: await openStreams(client) }))
        .catch((error) => {
          if (Date.now() < exp * 1_000) throw error
          cause = error
        })
      const opened = await Promise.race([opening, sleep(exp * 1_000 - Date.now())])
      if (opened !== undefined) return opened
      await connected.then((client) => client.close()).catch(() => undefined)
      await expect.poll(() => [...open]).toEqual([])
    }
    throw new Error('the streams were not open within a minute', { cause })
  }

  test('a subscription and a call end when the token expires [S79]', async () => {
    const { client, streams } = await openExpiring()
    await expectEnded(client, streams)
  })

  test('a subscription and a call end when the caller is revoked [S79]', async () => {
    const sub = `mallory-${runtime}`
    const client = await connect({ sub })
    const streams = await openStreams(client)
    const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
    await createRevocations(rest, Date.now).revokeBefore({
      kind: 'subject',
      issuer: ISSUER,
      value: sub,
      atSeconds: Math.floor(Date.now() / 1000) + 1,
      ttlSeconds: 600,
    })
    await expectEnded(client, streams)
  })
})
