/**
 * Gateways in real workerd with routes that require relations, with one Redis, and tuples written by
 * API.
 */
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { fromAddress, newAddress } from '../harness/address.ts'
import { connectedStatus } from '../harness/connected.ts'
import { callsOfRequests, forget, recordsOf, setMode } from '../harness/control.ts'
import { type FurtherGateway, startFurther } from '../harness/further-gateway.ts'
import { mint, REMOTE_ISSUER } from '../harness/issuer.ts'
import { usualOrLong } from '../harness/long.ts'
import { NEVER } from '../harness/never.ts'
import { sendRaw } from '../harness/raw.ts'
import { keysOf } from '../harness/stack-redis.ts'
import { postAs } from './oauth-clients.ts'

const stack = inject('stack')
const redis = keysOf(stack)
/** The number of deleted tuples, each observed at two gateways. */
const TRIALS = Number(process.env.RELATION_TRIALS ?? usualOrLong(8, 15))
/** The bound of the policy that caches decisions. */
const BOUND_MS = 500
const TIMEOUT_MS = 180_000
const AT_ONCE = 5
const PAUSE_MS = 40
const MAX_MS_A_TRIAL = 2_000

/** On a cluster, the tuples of a tenant are in its lane: a further call of the same round. */
const LEGS = stack.redis === 'cluster' ? 2 : 1

const gateways: FurtherGateway[] = []
/** Two gateways without a cache of decisions, and two with one. */
let strict: [string, string]
let remembering: [string, string]

async function start(policy: string): Promise<string> {
  const gateway = await startFurther(stack, { policy: `test/harness/${policy}` })
  gateways.push(gateway)
  return gateway.url
}

beforeAll(async () => {
  const own = 'relations-policy.ts'
  const remembered = 'remembered-relations-policy.ts'
  ;[strict, remembering] = await Promise.all([
    Promise.all([start(own), start(own)]),
    Promise.all([start(remembered), start(remembered)]),
  ])
})
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  redis.disconnect()
})
afterEach(async () => {
  await setMode(stack.rest, 'serve')
  await forget(stack.rest)
  await forget(stack.origin)
})

async function operatorToken(): Promise<string> {
  const grant = { grant_type: 'client_credentials' }
  const granted = await postAs(stack.operator, `${strict[0]}/oauth/token`, grant)
  expect(granted.status).toBe(200)
  return ((await granted.json()) as { access_token: string }).access_token
}

let operator: string | undefined
/** Writes and deletes tuples, `object relation subject`. Returns the consistency token. */
async function change(
  tenant: string | undefined,
  { writes = [], deletes = [] }: { writes?: readonly string[]; deletes?: readonly string[] },
): Promise<string> {
  operator ??= await operatorToken()
  const tuple = (text: string) => {
    const [object, relation, subject] = text.split(' ')
    return { object, relation, subject }
  }
  const body = JSON.stringify({
    ...(tenant !== undefined && { tenant }),
    ...(writes.length > 0 && { writes: writes.map(tuple) }),
    ...(deletes.length > 0 && { deletes: deletes.map(tuple) }),
  })
  const response = await fetch(`${strict[0]}/-/admin/relations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${operator}`, 'content-type': 'application/json' },
    body,
  })
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return response.headers.get('x-consistency-token') ?? ''
}

const tokenOf = (sub: string, claims: Record<string, unknown> = {}) =>
  mint(stack.inlineKey, { claims: { sub, ...claims } })

async function send(url: string, token: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${token}`, ...fromAddress(newAddress()), ...headers },
  })
  await response.arrayBuffer()
  return response
}

const statusOf = async (url: string, token: string, headers?: Record<string, string>) =>
  (await send(url, token, headers)).status

const originCalls = async () => (await recordsOf(stack.origin)).length
const newId = () => crypto.randomUUID()

/** Creates an order five levels away from `user:<sub>`. */
async function orderOf(sub: string, tenant?: string): Promise<string> {
  const id = newId()
  await change(tenant, {
    writes: [
      `order:${id} project project:${id}`,
      `project:${id} team team:${id}`,
      `team:${id} department department:${id}`,
      `department:${id} organisation organisation:${id}`,
      `organisation:${id} viewer user:${sub}`,
    ],
  })
  return id
}

describe('a route that requires a relation', () => {
  test('admits a caller with the relation over five levels, and no other request reaches the origin', async () => {
    const [anne, bob] = [newId(), newId()]
    const id = await orderOf(anne)
    expect(await statusOf(`${strict[0]}/orders/${id}`, await tokenOf(anne))).toBe(200)
    expect(await originCalls()).toBe(1)
    await forget(stack.origin)
    expect(await statusOf(`${strict[0]}/orders/${id}`, await tokenOf(bob))).toBe(403)
    expect(await statusOf(`${strict[0]}/orders/${newId()}`, await tokenOf(anne))).toBe(403)
    const powerless = await tokenOf(anne, { roles: [] })
    expect(await statusOf(`${strict[0]}/orders/${id}`, powerless)).toBe(403)
    const stranger = await mint(stack.remoteKey, { claims: { sub: anne, iss: REMOTE_ISSUER } })
    expect(await statusOf(`${strict[0]}/orders/${id}`, stranger)).toBe(403)
    expect(await originCalls()).toBe(0)
    expect(await statusOf(`${strict[0]}/watched/${id}`, await tokenOf(bob))).toBe(200)
  })

  test('admits no request if the tuples exceed the maximum depth', async () => {
    const [sub, first] = [newId(), newId()]
    const teams = Array.from({ length: 40 }, (_, index) => `team:${first}-${index}`)
    await change(undefined, {
      writes: [
        `order:${first} approver ${teams[0]}#member`,
        ...teams.slice(1).map((team, index) => `${teams[index]} member ${team}#member`),
        `${teams.at(-1)} member user:${sub}`,
      ],
    })
    expect(await statusOf(`${strict[0]}/orders/${first}`, await tokenOf(sub))).toBe(403)
    expect(await originCalls()).toBe(0)
  })

  test('a request with cached keys makes one call to Redis: with a limit, and with leases', async () => {
    const anne = newId()
    const id = await orderOf(anne)
    const token = await tokenOf(anne)
    for (const path of [`/orders/${id}`, `/leased/${id}`]) {
      for (let sent = 0; sent < 3; sent++) await statusOf(strict[0] + path, token)
      await forget(stack.rest)
      for (let count = 1; count <= 5; count++) {
        const { status } = await send(strict[0] + path, token)
        expect(status).toBe(200)
      }
      // Events of the audit trail name the object as well.
      const calls = (await recordsOf(stack.rest)).filter(
        ({ body }) => body.includes(`order:${id}`) && !body.includes('pc:audit:'),
      )
      expect(calls, path).toHaveLength(5)
      // No other calls, except renewals behind responses.
      const most = path.startsWith('/o') ? 5 : 10
      expect(await callsOfRequests(stack.rest)).toBeLessThanOrEqual(most * LEGS)
    }
  })
})

/** Runs all trials, several at once. */
async function tried(trial: () => Promise<void>): Promise<void> {
  let left = TRIALS
  const lane = async () => {
    while (left-- > 0) await trial()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
}

describe('a deleted tuple', () => {
  test(
    'denies from the next request on, at every gateway',
    async () => {
      const token = await tokenOf('anne')
      const counts = { late: 0, denied: 0 }
      await tried(async () => {
        const id = newId()
        await change(undefined, { writes: [`order:${id} owner user:anne`] })
        for (const url of strict) expect(await statusOf(`${url}/orders/${id}`, token)).toBe(200)
        await change(undefined, { deletes: [`order:${id} owner user:anne`] })
        for (const url of strict) {
          const { status } = await send(`${url}/orders/${id}`, token)
          if (status === 200) counts.late += 1
          if (status === 403) counts.denied += 1
        }
      })
      expect(counts.late, NEVER).toBe(0)
      expect(counts.denied).toBe(TRIALS * strict.length)
    },
    TIMEOUT_MS + TRIALS * MAX_MS_A_TRIAL,
  )

  test(
    'denies within the bound if decisions are cached, and at once with its consistency token',
    async () => {
      const token = await tokenOf('anne')
      const counts = { late: 0, lateByToken: 0, remembered: 0, denied: 0 }
      await tried(async () => {
        const id = newId()
        await change(undefined, { writes: [`order:${id} owner user:anne`] })
        for (const url of remembering)
          expect(await statusOf(`${url}/orders/${id}`, token)).toBe(200)
        const consistency = await change(undefined, { deletes: [`order:${id} owner user:anne`] })
        const deletedMs = performance.now()
        const [here, there] = remembering
        const headers = { 'x-consistency-token': consistency }
        const byToken = send(`${here}/orders/${id}`, token, headers)
        while (performance.now() < deletedMs + BOUND_MS * 1.5) {
          // The time before the request was sent, because the request may have waited.
          const sentMs = performance.now()
          const { status } = await send(`${there}/orders/${id}`, token)
          if (status === 403) counts.denied += 1
          if (status === 200 && sentMs >= deletedMs + BOUND_MS) counts.late += 1
          else if (status === 200) counts.remembered += 1
          await new Promise((done) => setTimeout(done, PAUSE_MS))
        }
        if ((await byToken).status === 200) counts.lateByToken += 1
      })
      expect(counts).toMatchObject({ late: 0, lateByToken: 0 })
      expect(counts.denied).toBeGreaterThan(TRIALS)
      // The test would detect a late denial: some requests within the bound were admitted.
      expect(counts.remembered).toBeGreaterThan(0)
    },
    TIMEOUT_MS + TRIALS * MAX_MS_A_TRIAL,
  )
})

describe('consistency tokens', () => {
  test('that are forged, or of another tenant or no tenant, are 400; an old one is accepted', async () => {
    const [anne, tenant] = [newId(), newId()]
    const id = await orderOf(anne, tenant)
    const url = `${strict[0]}/orders/${id}`
    const token = await tokenOf(anne, { tenant })
    const old = await change(tenant, { writes: [`order:${id} owner user:${anne}`] })
    await change(tenant, { deletes: [`order:${id} owner user:${anne}`] })
    const others = await change(newId(), { writes: [`order:${id} owner user:${anne}`] })
    const nobodys = await change(undefined, { writes: [`order:${id} owner user:${anne}`] })
    expect(await statusOf(url, token, { 'x-consistency-token': old })).toBe(200)
    const before = await originCalls()
    for (const bad of [others, nobodys, `${old}x`, old.toUpperCase(), 'v1', '0', 'a'.repeat(5_000)])
      expect(await statusOf(url, token, { 'x-consistency-token': bad }), bad).toBe(400)
    expect(await originCalls()).toBe(before)
    const [record] = await recordsOf(stack.origin)
    expect(record?.headers['x-consistency-token']).toBeUndefined()
  })

  test('of a write that Redis lost are 503 until Redis has as many writes', async () => {
    const [anne, tenant] = [newId(), newId()]
    const id = await orderOf(anne, tenant)
    const token = await tokenOf(anne, { tenant })
    const headers = {
      'x-consistency-token': await change(tenant, { writes: [`order:${id} owner user:${anne}`] }),
    }
    expect(await statusOf(`${strict[0]}/orders/${id}`, token, headers)).toBe(200)
    const [key = ''] = await redis.names(`pc:relation-version:${tenant}`)
    const version = await redis.get(key)
    await redis.set(key, '1')
    await forget(stack.origin)
    expect((await send(`${strict[0]}/orders/${id}`, token, headers)).status).toBe(503)
    expect(await originCalls()).toBe(0)
    await redis.set(key, version ?? '')
    expect(await statusOf(`${strict[0]}/orders/${id}`, token, headers)).toBe(200)
  })
})

describe('tenants with equal ids [S65]', () => {
  test('a tuple of one tenant grants nothing in another', async () => {
    const [anne, one, other] = [newId(), newId(), newId()]
    const id = await orderOf(anne, one)
    const url = `${strict[0]}/orders/${id}`
    expect(await statusOf(url, await tokenOf(anne, { tenant: one }))).toBe(200)
    await forget(stack.origin)
    for (const claims of [{ tenant: other }, {}, { tenant: `${one}:` }, { tenant: `${one}%3A` }])
      expect(await statusOf(url, await tokenOf(anne, claims)), JSON.stringify(claims)).toBe(403)
    expect(await originCalls()).toBe(0)
  })
})

describe('hostile parameters [S65]', () => {
  test('are refused or denied in every encoding, and never name another object', async () => {
    const anne = newId()
    const id = await orderOf(anne)
    const token = await tokenOf(anne)
    await forget(stack.origin)
    for (const path of [
      ...['a:b#x@y*', 'a:b%23x@y*', 'a%3Ab%23x%40y%2A', 'a%253Ab%2523x%2540y%252A', '*', '%2A'],
      ...[`${id}%23viewer`, `${id}%00`, `${id}%20`, `%20${id}`, `order:${id}`, `order%3A${id}`],
      ...[`x%2f..%2f${id}`, `${id}%2f`, `${id};x`, `${id}%e2%80%8b`, `${id}*`],
      ...[`%25${id}`, `${id}@user:${anne}`, `${id}%23viewer@user:${anne}`, 'x'.repeat(600)],
    ]) {
      const answer = await sendRaw(
        strict[0],
        `GET /orders/${path} HTTP/1.1\r\nHost: x.test\r\nAuthorization: Bearer ${token}\r\n` +
          'Connection: close\r\n\r\n',
      )
      expect([400, 403, 404], path).toContain(answer.status)
    }
    expect(await originCalls()).toBe(0)
    expect(await statusOf(`${strict[0]}/orders/${id}`, token)).toBe(200)
  })
})

describe('without Redis', () => {
  test.each(['refuse', 'hang', 'error'] as const)(
    '%s: every caller gets 503, and nothing reaches the origin; then as before',
    async (mode) => {
      const [anne, bob] = [newId(), newId()]
      const id = await orderOf(anne)
      const url = `${strict[0]}/orders/${id}`
      const [good, bad] = [await tokenOf(anne), await tokenOf(bob)]
      // On a cluster each master recovers for itself: that of these callers may still be away.
      const served = async () => {
        expect(await connectedStatus(() => statusOf(url, good))).toBe(200)
        expect(await connectedStatus(() => statusOf(url, bad))).toBe(403)
      }
      await served()
      await forget(stack.origin)
      await setMode(stack.rest, mode)
      for (const token of [good, bad, good, bad]) {
        const response = await send(url, token)
        expect(response.status).toBe(503)
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      }
      expect(await originCalls()).toBe(0)
      await setMode(stack.rest, 'serve')
      await served()
    },
  )
})
