/** Faults of Redis over RESP, through a running server: an outage is 503, and no fault lets a request in. */
import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Fault } from '../../../dev/fault-proxy/fault.ts'
import { type FaultProxy, startFaultProxy } from '../../../dev/fault-proxy/proxy.ts'
import { connectedStatus } from '../../harness/connected.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { type NodeGateway, startNodeGateway } from './gateway.ts'

let redis: TestRedis
let proxy: FaultProxy
let gateway: NodeGateway
beforeAll(async () => {
  redis = await startTestRedis()
  const { hostname, port } = new URL(redis.redisUrl)
  proxy = await startFaultProxy({ target: { host: hostname, port: Number(port) } })
  const REDIS_URL = `redis://127.0.0.1:${proxy.port}`
  gateway = await startNodeGateway({ REDIS_URL, REDIS_TIMEOUT_MS: '700' })
})
beforeEach(() => {
  gateway.reached.length = 0
})
afterEach(recover)
afterAll(async () => {
  await gateway?.close()
  await proxy?.close()
  await redis?.close()
})

async function get(token: string | undefined, path = '/orders') {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const response = await fetch(gateway.url + path, { headers })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Ends the fault, and waits until the gateway serves again. Until then, 503 is right. */
async function recover(): Promise<void> {
  await proxy.set({ kind: 'none' })
  const token = await gateway.token()
  expect(await connectedStatus(async () => (await get(token)).status)).toBe(200)
}

/** Returns a token that is revoked in Redis. */
async function revoked(): Promise<string> {
  const jti = crypto.randomUUID()
  const hash = createHash('sha256')
    .update(JSON.stringify([ISSUER, jti]))
    .digest('base64url')
  await redis.direct.set(`pc:revoked:${hash}`, '1', 'EX', 600)
  return gateway.token({ claims: { jti } })
}

async function expectOutage(token: string): Promise<void> {
  const { status, headers, text } = await get(token)
  expect([status, JSON.parse(text).code]).toEqual([503, 'dependency_unavailable'])
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
  expect(text).not.toMatch(/redis:|EVALSHA|pc:|READONLY|LOADING|NOAUTH|refused/i)
}

/** A reply of Redis, whatever the command is. */
const saying = (reply: string): Fault => ({ kind: 'answer', status: 200, body: reply })

describe.each<readonly [string, Fault]>([
  ['a refused connection [R01]', { kind: 'refuse' }],
  ['silence [R02]', { kind: 'hang' }],
  ['replies after the deadline [R03]', { kind: 'latency', ms: 1_000 }],
  ['a connection that is reset before the reply [R05]', { kind: 'reset', afterBytes: 0 }],
  ['a connection that is reset within the reply [R05]', { kind: 'reset', afterBytes: 3 }],
  ['random bytes [R06]', { kind: 'garbage' }],
  ['a reply of HTTP [R06]', saying('+OK\r\n')],
  ['a reply that ends early [R06]', { kind: 'truncate', afterBytes: 3 }],
])('%s', (_, fault) => {
  test('is an outage for new and known tokens, never a yes, and ends with the fault', async () => {
    const [known, bad] = [await gateway.token(), await revoked()]
    expect([(await get(known)).status, (await get(bad)).status]).toEqual([200, 401])
    gateway.reached.length = 0
    await proxy.set(fault)
    for (const token of [known, await gateway.token(), await revoked()]) await expectOutage(token)
    // A revocation that this process knows needs no Redis.
    expect((await get(bad)).status).toBeOneOf([401, 503])
    expect((await get('not-a-token')).status).toBe(401)
    expect(gateway.reached).toHaveLength(0)
    await recover()
    expect((await get(bad)).status).toBe(401)
    expect((await get(known)).status).toBe(200)
  })
})

test('after five failures no caller waits, and requests with invalid tokens still get 401 [R32]', async () => {
  await proxy.set({ kind: 'hang' })
  const token = await gateway.token()
  await Promise.all(Array.from({ length: 5 }, () => expectOutage(token)))
  const before = proxy.bytes().fromClients
  await Promise.all(Array.from({ length: 50 }, () => expectOutage(token)))
  expect((await get('not-a-token')).status).toBe(401)
  // At most a probe: far less than 50 calls of some hundred bytes.
  expect(proxy.bytes().fromClients - before).toBeLessThan(5_000)
  expect(gateway.reached).toHaveLength(0)
})

test('100 ms late, within the deadline: every request is decided [R03]', async () => {
  await proxy.set({ kind: 'latency', ms: 100 })
  const [token, bad] = [await gateway.token(), await revoked()]
  const replies = await Promise.all(Array.from({ length: 20 }, () => get(token)))
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
  expect((await get(bad)).status).toBe(401)
})

test('scripts that Redis has forgotten are sent again, without a failed request [R12]', async () => {
  const token = await gateway.token()
  expect((await get(token)).status).toBe(200)
  await redis.direct.script('FLUSH')
  const replies = await Promise.all(Array.from({ length: 20 }, () => get(token)))
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
})

test('a limit holds through resets of connections [R15]', async () => {
  const replies = []
  for (let round = 0; round < 12; round += 1) {
    await proxy.set(round % 3 === 1 ? { kind: 'reset', afterBytes: 0 } : { kind: 'none' })
    replies.push(await get(undefined, '/counted'))
  }
  expect(replies.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(3)
  expect(gateway.reached.length).toBeLessThanOrEqual(3)
  for (const { status } of replies) expect(status).toBeOneOf([200, 429, 503])
})
