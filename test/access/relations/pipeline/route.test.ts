import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { encodeConsistency } from '../../../../src/access/relations/consistency.ts'
import { tokenIdHash } from '../../../../src/access/token-id.ts'
import { credentialHash, storedReference } from '../../../../src/access/tokens/reference.ts'
import { Misconfigured } from '../../../../src/errors.ts'
import { upstash } from '../../../../src/features/upstash/index.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { ISSUER, REMOTE_ISSUER } from '../../../harness/issuer.ts'
import { lanesOfRun, namesInLanes } from '../../../harness/lanes.ts'
import { recordOf } from '../../admission/callers.ts'
import { PUBLIC_URL, ROUTES, startWorld, type World } from './gateway.ts'

/** Calls of a warm request. With lanes, the relation is a call of its own in the same round. */
const CALLS = lanesOfRun > 0 ? 2 : 1

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world?.close())
beforeEach(async () => {
  await world.redis.direct.flushall()
  world.reached.length = 0
})

/** Sends requests until Redis has both scripts, and clears the records. */
async function warm(isolate: ReturnType<World['isolate']>, token: string) {
  await isolate.statusOf('/orders/none', token)
  await isolate.statusOf('/orders/none', token)
  isolate.events.length = 0
}

describe('a route that requires a relation', () => {
  test('admits only callers that have it, through groups and folders', async () => {
    const isolate = world.isolate()
    await world.write(
      null,
      'order:1#owner@user:anne',
      'order:1#parent@folder:f',
      'folder:f#viewer@group:a#member',
      'group:a#member@group:b#member',
      'group:b#member@user:bob',
    )
    const [anne, bob, carl] = await Promise.all(
      ['anne', 'bob', 'carl'].map((sub) => world.token(sub)),
    )
    expect(await isolate.statusOf('/orders/1', anne)).toBe(200)
    expect(await isolate.statusOf('/orders/1', bob)).toBe(200)
    expect(world.reached).toEqual(['GET /orders/1', 'GET /orders/1'])
    expect(await isolate.statusOf('/orders/1', carl)).toBe(403)
    expect(await isolate.statusOf('/orders/2', anne)).toBe(403)
    expect(await isolate.statusOf('/orders/1', undefined)).toBe(401)
    expect(world.reached).toHaveLength(2)
  })

  test('reports only that the request is not allowed, and names the failed rule in the audit event', async () => {
    const isolate = world.isolate()
    const anne = await world.token('anne')
    await warm(isolate, anne)
    const response = await isolate.send('/orders/1', anne)
    expect(response.status).toBe(403)
    const text = await response.text()
    expect(JSON.parse(text)).toMatchObject({
      code: 'insufficient_permission',
      detail: 'This is not allowed.',
    })
    expect(text + JSON.stringify([...response.headers])).not.toMatch(/viewer|order:1|relation|anne/)
    expect(response.headers.get('www-authenticate')).toBeNull()
    expect(isolate.events.at(-1)).toMatchObject({
      decision: 'deny',
      reason: 'relation_missing:order#viewer',
      status: 403,
    })
    // The object is in the event, for operators, and in no response.
    expect(isolate.events.at(-1)?.grants?.relation).toBe('order:1#viewer')
  })

  test('requires the permission first: a caller without it gets no other reason', async () => {
    const isolate = world.isolate()
    await world.write(null, 'order:1#owner@user:anne')
    const powerless = await world.token('anne', { roles: [] })
    expect(await isolate.statusOf('/orders/1', powerless)).toBe(403)
    expect(isolate.events.at(-1)?.reason).toBe('permission_missing:orders:read')
    expect(await isolate.statusOf('/orders/2', powerless)).toBe(403)
    expect(isolate.events.at(-1)?.reason).toBe('permission_missing:orders:read')
    expect(world.reached).toEqual([])
  })

  test('treats HEAD like GET', async () => {
    const isolate = world.isolate()
    await world.write(null, 'order:1#owner@user:anne')
    const [anne, bob] = [await world.token('anne'), await world.token('bob')]
    expect(await isolate.statusOf('/orders/1', anne, { method: 'HEAD' })).toBe(200)
    expect(await isolate.statusOf('/orders/1', bob, { method: 'HEAD' })).toBe(403)
    expect(world.reached).toEqual(['HEAD /orders/1'])
  })

  test('refuses a relation that is undecidable from the tuples, and records why', async () => {
    const isolate = world.isolate()
    // This tuple blocks exactly the callers that may pay for the order.
    await world.write(null, 'order:1#owner@user:anne', 'order:1#blocked@order:1#payer')
    const anne = await world.token('anne')
    expect(await isolate.statusOf('/orders/1/payment', anne, { method: 'POST' })).toBe(403)
    expect(isolate.events.at(-1)?.reason).toBe('relation_unknown:negated_cycle')
    expect(world.reached).toEqual([])
  })

  test('in observe mode refuses no caller, and records the callers that it would have refused', async () => {
    const isolate = world.isolate()
    await world.write(null, 'order:1#owner@user:anne')
    const [anne, bob] = [await world.token('anne'), await world.token('bob')]
    expect(await isolate.statusOf('/watched/1', anne)).toBe(200)
    expect(isolate.events.at(-1)?.observed).toBeUndefined()
    expect(await isolate.statusOf('/watched/1', bob)).toBe(200)
    expect(isolate.events.at(-1)).toMatchObject({
      decision: 'allow',
      observed: ['relation_missing:order#viewer'],
    })
  })

  test('sees a deleted tuple from the next request on, in every isolate', async () => {
    const [here, there] = [world.isolate(), world.isolate()]
    const anne = await world.token('anne')
    for (let trial = 0; trial < 20; trial++) {
      const tuple = `order:t${trial}#viewer@user:anne`
      await world.write(null, tuple)
      for (const isolate of [here, there])
        expect(await isolate.statusOf(`/orders/t${trial}`, anne)).toBe(200)
      await world.remove(null, tuple)
      for (const isolate of [here, there])
        expect(await isolate.statusOf(`/orders/t${trial}`, anne)).toBe(403)
    }
  })

  test('uses contextual tuples for this request only', async () => {
    const relation = {
      object: 'order:{params.id}',
      relation: 'viewer',
      contextualTuples: [
        { object: 'order:{params.id}', relation: 'parent', subject: 'folder:{params.folder}' },
        { object: 'folder:shared', relation: 'viewer', subject: 'group:{tenant}#member' },
        { object: 'group:{tenant}', relation: 'member', subject: 'user:{subject}' },
      ],
    }
    const path = '/folders/:folder/orders/:id'
    const isolate = world.isolate({
      routes: [{ method: 'GET', path, permission: 'orders:read', relation }],
    })
    const anne = await world.token('anne', { tenant: 'acme' })
    expect(await isolate.statusOf('/folders/shared/orders/1', anne)).toBe(200)
    expect(await isolate.statusOf('/folders/other/orders/1', anne)).toBe(403)
    // A caller without a tenant has no such tuple, and then no query is made.
    await world.write(null, 'order:1#owner@user:bob')
    expect(await isolate.statusOf('/folders/shared/orders/1', await world.token('bob'))).toBe(403)
  })
})

describe('the cost of a relation', () => {
  test('is one call to Redis for a warm request, whatever the decision is', async () => {
    const isolate = world.isolate()
    await world.write(null, 'order:1#owner@user:anne')
    const [anne, bob] = [await world.token('anne'), await world.token('bob')]
    await warm(isolate, anne)
    await warm(isolate, bob)
    for (const [token, path] of [
      [anne, '/orders/1'],
      [bob, '/orders/1'],
      [anne, '/orders/2'],
    ] as const) {
      const before = world.redis.calls()
      await (await isolate.send(path, token)).arrayBuffer()
      expect(world.redis.calls() - before, path).toBe(CALLS)
    }
  })

  test('is one call beside a limit of the upstash engine as well', async () => {
    const isolate = world.isolate({
      policy: {
        limits: {
          standard: { limit: 9, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
          other: {
            limit: 9,
            windowSeconds: 60,
            by: 'subject',
            onUnavailable: 'deny',
            engine: upstash(),
          },
        },
      },
      routes: [
        { ...(ROUTES[0] as (typeof ROUTES)[0]), limits: ['standard', 'other' as 'standard'] },
      ],
    })
    await world.write(null, 'order:1#owner@user:anne')
    const anne = await world.token('anne')
    await warm(isolate, anne)
    const before = world.redis.calls()
    const response = await isolate.send('/orders/1', anne)
    expect(response.status).toBe(200)
    expect(response.headers.get('ratelimit')).toMatch(/r=6/)
    expect(world.redis.calls() - before).toBe(CALLS)
  })

  test('with leases is one call, and none while the relation is cached and units are left', async () => {
    const lease = { max: 50, ttlMs: 10_000 }
    const policy = {
      limits: {
        standard: {
          limit: 1_000_000,
          windowSeconds: 60,
          by: 'subject',
          onUnavailable: 'deny',
          lease,
        },
      },
      revocation: { maxStalenessMs: 60_000 },
    }
    await world.write(null, 'order:1#owner@user:anne')
    for (const [maxStalenessMs, expected] of [
      [0, 10 * CALLS],
      [60_000, 0],
    ] as const) {
      const isolate = world.isolate({ policy, relations: { maxStalenessMs } })
      const anne = await world.token('anne')
      for (let sent = 0; sent < 12; sent++) await isolate.statusOf('/orders/1', anne)
      const before = world.redis.calls()
      const statuses: number[] = []
      for (let sent = 0; sent < 10; sent++)
        statuses.push((await isolate.send('/orders/1', anne)).status)
      expect(statuses).toEqual(Array.from({ length: 10 }, () => 200))
      // Renewals continue after the responses.
      expect(world.redis.calls() - before).toBeGreaterThanOrEqual(expected)
      expect(world.redis.calls() - before).toBeLessThanOrEqual(expected + 3)
    }
  })

  test('is no query for impossible ids, and the origin is not reached', async () => {
    const isolate = world.isolate({
      routes: [{ ...(ROUTES[0] as (typeof ROUTES)[0]), limits: [] }],
    })
    const anne = await world.token('anne')
    await isolate.statusOf('/orders/1', anne)
    const before = world.redis.calls()
    expect(await isolate.statusOf(`/orders/${'x'.repeat(600)}`, anne)).toBe(403)
    expect(isolate.events.at(-1)?.reason).toBe('relation_missing:order#viewer')
    // The revocation of the token is checked all the same.
    expect(world.redis.calls() - before).toBe(1)
    expect(world.reached).toEqual([])
  })

  test('is a second call for an opaque token that is not in the cache, and then one', async () => {
    const isolate = world.isolate()
    await world.write(null, 'order:1#owner@user:anne')
    const text = crypto.randomUUID()
    const record = recordOf({
      tokenIssuer: PUBLIC_URL,
      issuer: ISSUER,
      audiences: [PUBLIC_URL],
      subject: 'anne',
      tenant: undefined,
      roles: ['reader'],
      scopes: [],
    })
    const key = DEFAULT_KEYS.reference + (await credentialHash(text))
    await world.redis.direct.set(key, await storedReference(record), 'EX', 600)
    await warm(isolate, await world.token('anybody'))
    expect(await isolate.statusOf('/orders/1', text)).toBe(200)
    const before = world.redis.calls()
    await (await isolate.send('/orders/1', text)).arrayBuffer()
    expect(world.redis.calls() - before).toBe(CALLS)
    expect(await isolate.statusOf('/orders/2', text)).toBe(403)
    // Another isolate makes its own call.
    const other = world.isolate()
    expect(await other.statusOf('/orders/2', text)).toBe(403)
    expect(other.events.at(-1)?.reason).toBe('relation_missing:order#viewer')
  })
})

describe('decisions before the relation', () => {
  test('a revoked caller and an exceeded limit are refused for that reason, whatever the relation is', async () => {
    const isolate = world.isolate({
      policy: {
        limits: {
          standard: { limit: 1, windowSeconds: 600, by: 'subject', onUnavailable: 'deny' },
        },
      },
    })
    await world.write(null, 'order:1#owner@user:anne', 'order:1#owner@user:bob')
    const anne = await world.token('anne')
    expect(await isolate.statusOf('/orders/1', anne)).toBe(200)
    expect(await isolate.statusOf('/orders/1', anne)).toBe(429)
    expect(await isolate.statusOf('/orders/2', anne)).toBe(429)
    const jti = crypto.randomUUID()
    const bob = await world.token('bob', { jti })
    for (const name of namesInLanes(`pc:revoked:${await tokenIdHash(ISSUER, jti)}`))
      await world.redis.direct.set(name, '1', 'EX', 600)
    expect(await isolate.statusOf('/orders/1', bob)).toBe(401)
    expect(await isolate.statusOf('/orders/1', bob, forged)).toBe(401)
    expect(world.reached).toHaveLength(1)
  })
})

const forged = { headers: { 'x-consistency-token': 'v1.zzz' } }

describe('consistency tokens', () => {
  test('a token of the own tenant requires at least its version', async () => {
    const isolate = world.isolate()
    const version = await world.write('acme', 'order:1#owner@user:anne')
    const anne = await world.token('anne', { tenant: 'acme' })
    const headers = { 'x-consistency-token': encodeConsistency(version, 'acme') }
    expect(await isolate.statusOf('/orders/1', anne, { headers })).toBe(200)
    const before = { 'x-consistency-token': encodeConsistency(version - 1_000_000, 'acme') }
    expect(await isolate.statusOf('/orders/1', anne, { headers: before })).toBe(200)
  })

  test.each([
    ['forged', 'v1.zzz'],
    ['empty', ''],
    ['of another tenant', encodeConsistency(1, 'other')],
    ['of no tenant', encodeConsistency(1, null)],
    ['from next year', encodeConsistency((Date.now() + 31_536_000_000) * 1_000, 'acme')],
    ['a list of two', `${encodeConsistency(1, 'acme')}, ${encodeConsistency(1, 'acme')}`],
    ['with a suffix', `${encodeConsistency(1, 'acme')}=`],
  ])('a token that is %s is 400, and the request reaches no origin', async (_, token) => {
    const isolate = world.isolate()
    await world.write('acme', 'order:1#owner@user:anne')
    const anne = await world.token('anne', { tenant: 'acme' })
    const headers = { 'x-consistency-token': token }
    expect(await isolate.statusOf('/orders/1', anne, { headers })).toBe(400)
    expect(isolate.events.at(-1)?.reason).toBe('malformed_request:consistency_token')
    expect(await isolate.statusOf('/watched/1', anne, { headers })).toBe(400)
    expect(world.reached).toEqual([])
  })

  test('a Redis with an older version than required is 503, and no request passes', async () => {
    const isolate = world.isolate()
    const version = await world.write('acme', 'order:1#owner@user:anne')
    const anne = await world.token('anne', { tenant: 'acme' })
    await warm(isolate, anne)
    const headers = { 'x-consistency-token': encodeConsistency(version + 1, 'acme') }
    const response = await isolate.send('/orders/1', anne, { headers })
    expect(response.status).toBe(503)
    expect(isolate.events.at(-1)?.reason).toBe('redis:stale')
    expect(world.reached).toEqual([])
  })

  test('the origin does not receive the token', async () => {
    const isolate = world.isolate()
    const version = await world.write(null, 'order:1#owner@user:anne')
    const headers = { 'x-consistency-token': encodeConsistency(version, null) }
    expect(await isolate.statusOf('/orders/1', await world.token('anne'), { headers })).toBe(200)
    expect(world.receivedHeaders.at(-1)?.['x-consistency-token']).toBeUndefined()
  })
})

describe('the option `issuers` of relations', () => {
  const relations = (issuers?: readonly string[]) => ({ ...(issuers && { issuers }) })

  test('a gateway that trusts two issuers refuses to start until the policy distinguishes them', () => {
    const env = world.twoIssuers
    const start = (options: object) => () => world.isolate({ env, relations: options })
    expect(start({})).toThrow(Misconfigured)
    expect(start({})).toThrow(/relations\.issuers: https:\/\/issuer\.test and https:\/\/remote/)
    for (const options of [
      { issuers: [] },
      { issuers: [ISSUER] },
      { issuers: [ISSUER, REMOTE_ISSUER] },
      { subject: 'user:{issuer}|{subject}' },
    ])
      expect(start(options)).not.toThrow()
  })

  test('callers of an unlisted issuer have no relations, and no query is made', async () => {
    const isolate = world.isolate({ env: world.twoIssuers, relations: relations([ISSUER]) })
    await world.write(null, 'order:1#owner@user:anne')
    const own = await world.token('anne')
    const other = await world.token('anne', { iss: REMOTE_ISSUER })
    expect(await isolate.statusOf('/orders/1', own)).toBe(200)
    expect(await isolate.statusOf('/orders/1', other)).toBe(403)
    expect(isolate.events.at(-1)?.reason).toBe('relation_missing:order#viewer')
  })

  /** Stores an opaque token of the gateway itself for Anne of an issuer. */
  async function issuedFor(issuer: string): Promise<string> {
    const text = crypto.randomUUID()
    const record = recordOf({
      tokenIssuer: PUBLIC_URL,
      issuer,
      audiences: [PUBLIC_URL],
      subject: 'anne',
      tenant: undefined,
      roles: ['reader'],
      scopes: [],
    })
    const key = DEFAULT_KEYS.reference + (await credentialHash(text))
    await world.redis.direct.set(key, await storedReference(record), 'EX', 600)
    return text
  }

  test('callers of the gateway itself have relations, whatever issuers are listed', async () => {
    const isolate = world.isolate({ relations: relations([]) })
    await world.write(null, 'order:1#owner@user:anne')
    expect(await isolate.statusOf('/orders/1', await issuedFor(PUBLIC_URL))).toBe(200)
    expect(await isolate.statusOf('/orders/1', await issuedFor(ISSUER))).toBe(403)
  })

  test('callers of an issuer that is no longer trusted have none, with gateway tokens as well', async () => {
    const isolate = world.isolate()
    await world.write(null, 'order:1#owner@user:anne')
    await warm(isolate, await world.token('anybody'))
    for (const [issuer, status] of [
      [ISSUER, 200],
      [PUBLIC_URL, 200],
      [REMOTE_ISSUER, 403],
    ] as const) {
      const text = await issuedFor(issuer)
      expect(await isolate.statusOf('/orders/1', text), issuer).toBe(status)
    }
  })

  test('a subject template with the issuer separates the subjects of two issuers', async () => {
    const subject = 'user:{issuer}|{subject}'
    const isolate = world.isolate({ env: world.twoIssuers, relations: { subject } })
    await world.write(null, 'order:1#owner@user:https%3A//issuer.test|anne')
    const other = await world.token('anne', { iss: REMOTE_ISSUER })
    expect(await isolate.statusOf('/orders/1', await world.token('anne'))).toBe(200)
    expect(await isolate.statusOf('/orders/1', other)).toBe(403)
  })
})
