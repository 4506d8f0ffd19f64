/** Routes of a feature of a user: they have the guards of routes of the policy until their responses end. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import * as z from 'zod/mini'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { defineFeature } from '../../../src/feature.ts'
import { openapi } from '../../../src/features/openapi/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import { createGateway, type Gateway } from '../../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { streamsOfWorkers } from '../../../src/streams/stream-runtime.ts'
import {
  ISSUER,
  PUBLIC_URL,
  startGateway,
  type TestGateway,
} from '../../features/operators/gateway.ts'

const handled: string[] = []
let cancelled = 0

const events = () =>
  new Response(
    new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('data: 1\n\n')),
      cancel() {
        cancelled += 1
      },
    }),
    { headers: { 'Content-Type': 'text/event-stream' } },
  )
const route = { permission: 'door:use', summary: 'X', response: 'X' }
/** The calls of the gateway have no tuples. */
const described = z.strictObject({ codes: z.optional(z.tuple([z.string(), z.number()])) })
const door = defineFeature({
  name: 'door',
  operatorCalls: {
    lock: {
      ...{ method: 'POST', path: '/door', permission: 'portcullis:door:lock' },
      ...{ summary: 'X', response: 'X', body: described },
    },
  },
  routes: {
    open: { ...route, method: 'POST', path: '/-/door', body: z.strictObject({ code: z.string() }) },
    close: { ...route, method: 'DELETE', path: '/-/door', reply: () => described },
    watch: { ...route, method: 'GET', path: '/-/door' },
  },
  create: () => ({
    operatorCalls: { lock: () => undefined },
    routes: {
      open(c) {
        handled.push('open')
        return c.json({ open: true })
      },
      close(c) {
        handled.push('close')
        return c.body(null, 204)
      },
      watch: events,
    },
    stagesOf: ({ path }) =>
      path === '/stage/admitted' || path === '/stage/response'
        ? { [path.slice('/stage/'.length)]: { run: async () => events() } }
        : undefined,
  }),
})
const policy = definePolicy({
  roles: { porter: ['door:use'] },
  limits: {},
  features: [door, openapi(), operators()],
  routes: ['/orders', '/stage/admitted', '/stage/response'].map((path) => ({
    method: 'GET' as const,
    path,
    permission: 'door:use' as const,
  })),
})

let gateway: TestGateway
let app: Gateway
let revoke: (subject: string) => Promise<void>
beforeAll(async () => {
  gateway = await startGateway()
  app = createGateway(
    {
      ...composeServices(gateway.env, policy, WORKERS),
      auditSink: { record: (event) => void gateway.events.push(event) },
      streams: { ...streamsOfWorkers(false), recheckSeconds: 0.05 },
    },
    policy,
  )
  const { url, token } = gateway.redis
  const revocations = createRevocations(createRedisRest({ url, token, timeoutMs: 5_000 }), Date.now)
  revoke = (subject) =>
    revocations.revokeBefore({
      ...{ kind: 'subject', issuer: ISSUER, value: subject },
      ...{ atSeconds: Math.floor(Date.now() / 1000) + 1, ttlSeconds: 600 },
    })
})
afterAll(() => gateway?.close())
beforeEach(() => {
  handled.length = 0
  gateway.events.length = 0
})

const send = async (subject: string, init: RequestInit & { duplex?: 'half' }, path = '/-/door') => {
  const token = await gateway.token({ sub: subject, roles: ['porter'] })
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  return app.fetch(new Request(PUBLIC_URL + path, { headers, ...init }))
}
afterEach(() => vi.restoreAllMocks())

/** Returns a body whose second half comes after `meanwhile`, two seconds later by the clock. */
function slowBody(meanwhile: () => Promise<void>): ReadableStream<Uint8Array> {
  const now = Date.now
  const halves = ['{"code":', '"1"}'].map((text) => new TextEncoder().encode(text))
  return new ReadableStream(
    {
      async pull(controller) {
        if (halves.length === 1) {
          vi.spyOn(Date, 'now').mockImplementation(() => now() + 2_000)
          await meanwhile()
        }
        const half = halves.shift()
        if (half === undefined) controller.close()
        else controller.enqueue(half)
      },
    },
    { highWaterMark: 0 },
  )
}

test('a caller who is revoked while a slow body arrives does not reach the handler', async () => {
  const answers: unknown[] = []
  for (const [subject, meanwhile] of [
    ['slow', async () => {}],
    ['revoked', () => revoke('revoked')],
  ] as const) {
    const body = slowBody(meanwhile)
    answers.push([
      (await send(subject, { method: 'POST', body, duplex: 'half' })).status,
      handled.length,
    ])
    vi.restoreAllMocks()
  }
  expect(answers).toEqual([
    [200, 1],
    [401, 1],
  ])
  expect(gateway.events.map(({ decision }) => decision)).toEqual(['allow', 'deny'])
})

test('a body that the route does not declare is refused before the handler', async () => {
  expect((await send('a', { method: 'DELETE' })).status).toBe(204)
  expect((await send('a', { method: 'DELETE', body: '{}' })).status).toBe(413)
  const body = slowBody(async () => {})
  expect((await send('a', { method: 'DELETE', body, duplex: 'half' })).status).toBe(413)
  expect(handled).toEqual(['close'])
})

test.each([
  ['a handler', '/-/door'],
  ['an admitted stage', '/stage/admitted'],
  ['a stage before the origin', '/stage/response'],
])('an open response of %s ends when its caller is revoked', async (_name, path) => {
  cancelled = 0
  const watcher = `watcher of ${path}`
  const response = await send(watcher, { method: 'GET' }, path)
  const reader = response.body?.getReader()
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('data: 1\n\n')
  await revoke(watcher)
  await expect(reader?.read()).rejects.toThrow()
  expect(cancelled).toBe(1)
  expect(gateway.events.map(({ decision, reason }) => [decision, reason])).toEqual([
    ['allow', 'ok'],
    ['deny', 'stream_ended:token_revoked:subject'],
  ])
})

test('schemas of every kind are described', async () => {
  const document = await (await app.request('/-/openapi.json')).text()
  const tuple = '"prefixItems":[{"type":"string"},{"type":"number"}]'
  expect(document.split(tuple)).toHaveLength(3)
})
