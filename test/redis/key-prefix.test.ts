/** Two gateways with different prefixes on one Redis. Each has an isolate, 0 and 1. */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { authorizationServer } from '../../src/features/authorization-server/index.ts'
import { operators } from '../../src/features/operators/index.ts'
import { relations } from '../../src/features/relations/index.ts'
import { upstash } from '../../src/features/upstash/index.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import { PUBLIC_URL, startGateway, type TestGateway } from '../features/operators/gateway.ts'
import { MODEL } from '../features/operators/relation-model.ts'
import { ISSUER } from '../harness/issuer.ts'
import { good, mistakes } from '../validators/environment.ts'

const PREFIX = 'pc-staging:'

const policyWith = (maxStalenessMs: number) =>
  definePolicy({
    revocation: { maxStalenessMs },
    features: [operators(), authorizationServer()],
    relations: relations({ model: MODEL, issuers: [ISSUER] }),
    roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
    limits: {
      few: { limit: 2, windowSeconds: 3_600, by: 'subject', onUnavailable: 'deny' },
      approximate: {
        limit: 2,
        windowSeconds: 3_600,
        by: 'subject',
        onUnavailable: 'deny',
        engine: upstash(),
      },
    },
    routes: [
      { method: 'GET', path: '/orders', permission: 'orders:read' },
      { method: 'GET', path: '/few', permission: 'orders:read', limits: ['few'] },
      { method: 'GET', path: '/approximate', permission: 'orders:read', limits: ['approximate'] },
    ],
  })

describe.each([
  ['without a bound of staleness', 0],
  ['with a feed of revocations', 60_000],
])('two gateways with different prefixes on one Redis, %s', (_, maxStalenessMs) => {
  let gateway: TestGateway
  const reader = (sub: string) => gateway.token({ sub, roles: ['reader'] })
  const statusAt = async (at: 0 | 1, credential: string, path?: string) =>
    (await gateway.call(credential, at, path)).status
  /** Lets most of the bound pass. Then the request of a new caller reads the feed again. */
  const readFeed = async (at: 0 | 1) => {
    callers += 1
    vi.setSystemTime(Date.now() + 0.9 * maxStalenessMs)
    expect(await statusAt(at, await reader(`caller-${callers}`))).toBe(200)
  }
  let callers = 0

  beforeAll(async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    gateway = await startGateway({
      policy: policyWith(maxStalenessMs) as never,
      prefixes: [undefined, PREFIX],
    })
  })

  beforeEach(() => gateway.redis.direct.flushall())

  afterAll(async () => {
    vi.useRealTimers()
    await gateway?.close()
  })

  test('do not see each other’s revocations', async () => {
    const alice = await reader('alice')
    expect([await statusAt(0, alice), await statusAt(1, alice)]).toEqual([200, 200])
    const body = { kind: 'subject', value: 'alice', issuer: ISSUER }
    expect((await gateway.admin('POST', '/revocations', body, { at: 1 })).status).toBe(201)
    await readFeed(1)
    expect([await statusAt(0, alice), await statusAt(1, alice)]).toEqual([200, 401])
  })

  test('do not see each other’s bans', async () => {
    const bob = await reader('bob')
    expect([await statusAt(0, bob), await statusAt(1, bob)]).toEqual([200, 200])
    const body = { kind: 'subject', value: 'bob', issuer: ISSUER, seconds: 60 }
    expect((await gateway.admin('POST', '/bans', body, { at: 1 })).status).toBe(201)
    await readFeed(1)
    expect([await statusAt(0, bob), await statusAt(1, bob)]).toEqual([200, 403])
  })

  test.each(['/few', '/approximate'])('do not share the limit of %s', async (path) => {
    const carol = await reader(`carol${path}`)
    const atSecond = [1, 2, 3].map(() => statusAt(1, carol, path))
    expect((await Promise.all(atSecond)).sort()).toEqual([200, 200, 429])
    expect(await statusAt(0, carol, path)).toBe(200)
  })

  test('do not accept each other’s API keys, and revoke their own', async () => {
    const body = { name: 'ci', subject: 'robot', roles: ['reader'] }
    const created = await gateway.admin('POST', '/api-keys', body, { at: 1 })
    expect(created.status).toBe(201)
    const { apiKey } = created.body
    expect([await statusAt(0, apiKey), await statusAt(1, apiKey)]).toEqual([401, 200])
    const revocation = { kind: 'subject', value: 'robot', issuer: PUBLIC_URL }
    expect((await gateway.admin('POST', '/revocations', revocation, { at: 1 })).status).toBe(201)
    await readFeed(1)
    const fresh = await gateway.admin('POST', '/api-keys', { ...body, subject: 'other' }, { at: 1 })
    expect(await statusAt(1, apiKey)).toBe(401)
    expect(await statusAt(1, fresh.body.apiKey)).toBe(200)
  })

  test('do not share clients and tuples', async () => {
    const body = { name: 'billing', grants: ['client_credentials'], roles: ['reader'] }
    const { clientId, clientSecret } = (await gateway.admin('POST', '/clients', body, { at: 1 }))
      .body
    const form = `grant_type=client_credentials&client_id=${clientId}&client_secret=${clientSecret}`
    const request = {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: form,
    }
    expect((await gateway.send('/oauth/token', request, 1)).status).toBe(200)
    expect((await gateway.send('/oauth/token', request, 0)).status).toBe(401)
    const tuples = { writes: [{ object: 'folder:a', relation: 'viewer', subject: 'user:anne' }] }
    const written = await gateway.admin('POST', '/relations', tuples, { at: 1 })
    expect(written.status, written.text).toBe(200)
    const listed = async (at: 0 | 1) =>
      (await gateway.admin('GET', '/relations?object=folder:a', undefined, { at })).body.tuples
        .length
    expect([await listed(0), await listed(1)]).toEqual([0, 1])
  })

  test('write no key without their prefix', async () => {
    const dave = await reader('dave')
    await statusAt(1, dave, '/few')
    await statusAt(1, dave, '/approximate')
    await statusAt(1, 'pk_not-a-key')
    const revocation = { kind: 'subject', value: 'dave', issuer: ISSUER }
    await gateway.admin('POST', '/revocations', revocation, { at: 1 })
    const override = { limit: 'few', value: 'dave', issuer: ISSUER, requests: 9 }
    expect((await gateway.admin('POST', '/limits/overrides', override, { at: 1 })).status).toBe(201)
    const keys = await gateway.redis.direct.keys('*')
    expect(keys.length).toBeGreaterThan(5)
    expect(keys.filter((key) => !key.startsWith(PREFIX))).toEqual([])
  })
})

test.each(['', 'pc', ':', 'PC:', 'pc:staging:', "pc':", 'pc staging:', `${'p'.repeat(33)}:`])(
  'a prefix %j is a configuration mistake',
  (prefix) => {
    expect(mistakes({ ...good, REDIS_PREFIX: prefix })).toEqual([
      expect.stringMatching(/^REDIS_PREFIX: must be at most 32/),
    ])
  },
)
