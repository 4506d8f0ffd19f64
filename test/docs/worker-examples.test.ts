import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey, mint, type TestKey } from '../harness/issuer.ts'
import { ROOT } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { type Running, startWorkerd } from '../origin/workerd.ts'

const NOTE = JSON.stringify({ text: 'buy nails' })

let key: TestKey
let provider: TestServer
let redis: TestRedis

beforeAll(async () => {
  key = await createKey('notes')
  provider = await startHttpServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ keys: [key.publicJwk] }))
  })
  redis = await startTestRedis()
})

afterAll(async () => {
  await redis?.close()
  await provider?.close()
})

const startExample = (name: string) =>
  startWorkerd({
    entry: join(ROOT, `examples/${name}/worker.ts`),
    vars: {
      UPSTASH_REDIS_REST_URL: redis.url,
      UPSTASH_REDIS_REST_TOKEN: redis.token,
      REDIS_TIMEOUT_MS: '5000',
      IDP_URL: provider.url,
    },
  })

const tokenOf = (roles: readonly string[]) =>
  mint(key, { claims: { iss: provider.url, aud: 'https://notes.example.com', roles, sub: 'eve' } })

const sendTo = ({ port }: Running, path: string, bearer?: string, body?: string) =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    headers: {
      ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { method: 'POST', body }),
  })

test('the example with the fewest parts permits a role, and refuses another and a missing token', async () => {
  const worker = await startExample('parts')
  onTestFinished(() => worker.stop())
  const allowed = await sendTo(worker, '/notes', await tokenOf(['reader']))
  expect(allowed.status).toBe(200)
  expect(await allowed.json()).toEqual({ notesOf: 'eve' })
  const refused = [
    await sendTo(worker, '/notes', await tokenOf(['writer'])),
    await sendTo(worker, '/notes'),
  ]
  expect(refused.map(({ status }) => status)).toEqual([403, 401])
  for (const refusal of refused) expect(await refusal.text()).not.toContain('notesOf')
})

describe('the example of a Worker with Portcullis as middleware, in workerd', () => {
  let worker: Running
  beforeAll(async () => {
    worker = await startExample('middleware')
  })
  afterAll(() => worker?.stop())

  const send = (path: string, bearer?: string, body?: string) => sendTo(worker, path, bearer, body)

  test('a caller with a role gets a response with the limit', async () => {
    const answer = await send('/notes', await tokenOf(['reader']))
    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual({ notesOf: 'eve' })
    expect(answer.headers.get('RateLimit-Policy')).toBe('"standard";q=100;w=60')
  })

  test('each guard refuses its kind of request', async () => {
    const [reader, writer] = [await tokenOf(['reader']), await tokenOf(['writer'])]
    const answers = [
      await send('/notes'),
      await send('/notes', 'a.b.c'),
      await send('/notes', reader, NOTE),
      await send('/notes', writer, '{"text":"","more":1}'),
      await send('/notes', writer, JSON.stringify({ text: 'x'.repeat(70_000) })),
      await send('/a%2fb', writer),
      await send('/nothing', writer),
      await send('/notes', writer, NOTE),
    ]
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 403, 422, 413, 400, 404, 201])
    for (const refusal of answers.slice(0, -1))
      expect(refusal.headers.get('Content-Type')).toBe('application/problem+json')
    expect(await answers.at(-1)?.json()).toEqual({ text: 'buy nails' })
  })

  test('one request is one round trip to Redis', async () => {
    const reader = await tokenOf(['reader'])
    await send('/notes', reader)
    const before = redis.calls()
    await send('/notes', reader)
    expect(redis.calls() - before).toBe(1)
  })
})
