import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../../../dev/fault-proxy/proxy.ts'
import { tokenIdHash } from '../../../../src/access/token-id.ts'
import { connectedStatus } from '../../../harness/connected.ts'
import { startHttpServer, type TestServer } from '../../../harness/http-server.ts'
import { ISSUER } from '../../../harness/issuer.ts'
import { lanesOfRun, namesInLanes } from '../../../harness/lanes.ts'
import { FAULTS, RUBBISH } from '../../../isolate/rubbish.ts'
import { ROUTES, startWorld, type World } from './gateway.ts'

type Spoil = (replies: unknown[]) => unknown[]

/** Changes the replies of a call. With lanes, the relation is a call of its own. */
function changed(replies: unknown[]): unknown {
  if (tamper === undefined) return replies
  return lanesOfRun > 0 ? tamper([undefined, ...replies]).slice(1) : tamper(replies)
}

let world: World
/** Changes the replies of Redis. */
let between: TestServer
let tamper: Spoil | undefined
let proxy: FaultProxy
beforeAll(async () => {
  world = await startWorld()
  between = await startHttpServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const answer = await fetch(world.redis.url + request.url, {
      method: 'POST',
      headers: { authorization: request.headers.authorization ?? '' },
      body: Buffer.concat(chunks),
    })
    const replies: unknown = await answer.json()
    const asksRelation = Buffer.concat(chunks).includes('relation-version:')
    const isChanged = tamper !== undefined && (lanesOfRun === 0 || asksRelation)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(isChanged ? changed(replies as unknown[]) : replies))
  })
  const { hostname: host, port } = new URL(world.redis.url)
  proxy = await startFaultProxy({ target: { host, port: Number(port) } })
})
afterAll(async () => {
  await proxy?.close()
  await between?.close()
  await world?.close()
})
beforeEach(async () => {
  tamper = undefined
  await world.redis.direct.flushall()
  world.reached.length = 0
})

/** Creates a warm isolate behind the faulty Redis, and two callers. One of them may see order 1. */
async function setUp(url: string, watch = false, timeoutMs = 5_000) {
  const isolate = world.isolate({
    env: { UPSTASH_REDIS_REST_URL: url, REDIS_TIMEOUT_MS: String(timeoutMs) },
    routes: [...ROUTES].map((route) => ({ ...route, limits: [] })),
  })
  await world.write(null, 'order:1#viewer@user:anne')
  const [anne, bob] = [await world.token('anne'), await world.token('bob')]
  const path = watch ? '/watched/1' : '/orders/1'
  expect(await connectedStatus(() => isolate.statusOf(path, anne))).toBe(200)
  world.reached.length = 0
  expect(await connectedStatus(() => isolate.statusOf(path, bob))).toBe(watch ? 200 : 403)
  expect(world.reached).toEqual(watch ? [`GET ${path}`] : [])
  world.reached.length = 0
  return { isolate, anne, bob, path }
}

const VERSION = '1795183974000000'
const MALFORMED: readonly (readonly [string, (sound: { result?: unknown }) => unknown])[] = [
  ['null', () => ({ result: null })],
  ['nothing', () => ({})],
  ['an object', () => ({ result: {} })],
  ['a number', () => ({ result: 1 })],
  ['true', () => ({ result: true })],
  ['a text', () => ({ result: 'allowed' })],
  ['an empty list', () => ({ result: [] })],
  ['an error', () => ({ error: 'OOM command not allowed' })],
  ['an error of the script', () => ({ error: 'ERR user_script:1: attempt to index a nil value' })],
  ['a result and an error', ({ result }) => ({ result, error: 'ERR' })],
  ['a list in a list', ({ result }) => ({ result: [result] })],
  ['text as outcome', ({ result }) => ({ result: replaced(result, 0, 'yes') })],
  ['null as outcome', ({ result }) => ({ result: replaced(result, 0, null) })],
  ['an unknown number as outcome', ({ result }) => ({ result: replaced(result, 0, 99) })],
  ['a list as outcome', ({ result }) => ({ result: replaced(result, 0, ['allowed']) })],
  ['null as version', ({ result }) => ({ result: replaced(result, 1, null) })],
  ['a number as version', ({ result }) => ({ result: replaced(result, 1, 7) })],
  ['text as version', ({ result }) => ({ result: replaced(result, 1, 'new') })],
  ['only the outcome', ({ result }) => ({ result: (result as unknown[]).slice(0, 1) })],
  ['one part too few', ({ result }) => ({ result: (result as unknown[]).slice(0, -1) })],
  ['one part too many', ({ result }) => ({ result: [...(result as unknown[]), VERSION] })],
]

const replaced = (list: unknown, at: number, value: unknown): unknown[] =>
  (list as unknown[]).map((each, index) => (index === at ? value : each))

describe('a reply with a malformed result for the relation [R06]', () => {
  test.each(MALFORMED)(
    '%s is 503 for every caller, and the origin is not reached',
    async (_, change) => {
      const { isolate, anne, bob, path } = await setUp(between.url)
      tamper = (replies) =>
        replies.map((reply, index) => (index === 1 ? change(reply as object) : reply))
      for (const token of [anne, bob]) {
        const response = await isolate.send(path, token)
        expect(response.status).toBe(503)
        expect(await response.text()).not.toMatch(/OOM|user_script|order|viewer|redis/i)
        expect(isolate.events.at(-1)?.reason).toMatch(/^redis:(malformed|refused)$/)
      }
      expect(world.reached).toEqual([])
      tamper = undefined
      expect(await isolate.statusOf(path, anne)).toBe(200)
    },
  )

  test.each([
    ['is missing', (replies: unknown[]) => replies.slice(0, 1)],
    ['replaces the whole reply', (replies: unknown[]) => [replies[1], replies[1]]],
    ['precedes the rest', (replies: unknown[]) => replies.toReversed()],
    ['comes twice', (replies: unknown[]) => [...replies, replies[1]]],
  ])('a result that %s is 503 as well', async (what, change) => {
    // With lanes, this is the whole reply of the relation.
    if (lanesOfRun > 0 && what === 'replaces the whole reply') return
    const { isolate, anne, bob, path } = await setUp(between.url)
    tamper = change
    for (const token of [anne, bob]) expect((await isolate.send(path, token)).status).toBe(503)
    expect(world.reached).toEqual([])
  })

  test('in observe mode, the request passes and the audit event names the fault', async () => {
    const { isolate, bob, path } = await setUp(between.url, true)
    tamper = (replies) => [replies[0], { result: null }]
    expect((await isolate.send(path, bob)).status).toBe(200)
    expect(isolate.events.at(-1)?.observed).toEqual(['redis:malformed'])
  })

  test('a refusal of the caller takes precedence over the fault', async () => {
    const { isolate, path } = await setUp(between.url)
    tamper = (replies) => [replies[0], { result: null }]
    const powerless = await world.token('anne', { roles: [] })
    expect((await isolate.send(path, powerless)).status).toBe(403)
    expect(isolate.events.at(-1)?.reason).toBe('permission_missing:orders:read')
    const jti = crypto.randomUUID()
    const revoked = await world.token('anne', { jti })
    const key = `pc:revoked:${await tokenIdHash(ISSUER, jti)}`
    for (const name of namesInLanes(key)) await world.redis.direct.set(name, '1', 'EX', 600)
    expect((await isolate.send(path, revoked)).status).toBe(401)
  })
})

describe('a faulty Redis [R01, R02, R03, R04, R05, R06]', () => {
  test.each([...FAULTS, ...RUBBISH])(
    '%s: an unauthorized caller is never admitted',
    async (_, fault) => {
      await proxy.set({ kind: 'none' })
      // The default deadline.
      const { isolate, bob, path } = await setUp(proxy.url, false, 250)
      await proxy.set(fault)
      for (let sent = 0; sent < 2; sent++)
        expect([403, 503]).toContain((await isolate.send(path, bob)).status)
      expect(world.reached).toEqual([])
    },
  )
})
