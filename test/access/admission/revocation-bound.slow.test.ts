/**
 * After a revocation has returned, no request is admitted later than the bound, whatever happens to
 * Redis. `REVOCATIONS=1000` sets the number.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../../dev/fault-proxy/proxy.ts'
import { findBan } from '../../../src/access/abuse/ban.ts'
import { createKeyCache } from '../../../src/access/admission/keys.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { createRevocationFeed, type FeedMark } from '../../../src/access/revocation/feed.ts'
import { revokedBy } from '../../../src/access/revocation/revocation.ts'
import { Unavailable } from '../../../src/errors.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { createRevocationFeedSource } from '../../harness/feed-source.ts'
import { startGateway, type TestGateway } from '../../harness/gateway.ts'
import { AUDIENCE, type TestKey } from '../../harness/issuer.ts'
import { NEVER } from '../../harness/never.ts'
import { redisVars, type TestRedis } from '../../harness/redis.ts'
import { newCallerOf, outcomeOf, revokeAt } from './revocable.ts'
import { type Caller, countLate, type Outcome } from './revocation-bound.ts'

const REVOCATIONS = Number(process.env.REVOCATIONS ?? 30)
const ISOLATES = 4
const BOUND_MS = 300
const ADDRESS = '192.0.2.1'
/** A round of 10 callers each, including the recovery of Redis. */
const TIMEOUT_MS = 30_000 + REVOCATIONS * 1_500

let redis: TestRedis
let proxy: FaultProxy
let whole: TestGateway
let key: TestKey
beforeAll(async () => {
  whole = await startGateway({ audience: [AUDIENCE] })
  ;({ redis, key } = whole)
})
afterAll(() => whole.close())
beforeEach(async () => {
  await redis.direct.flushall()
  const { hostname: host, port } = new URL(redis.url)
  proxy = await startFaultProxy({ target: { host, port: Number(port) } })
})
afterEach(() => proxy.close())

const newCaller = () => newCallerOf(key)
/** Not through the proxy. */
const revoke = (caller: Caller, index: number) => revokeAt(redis, caller, index)

/**
 * Creates an isolate of the deciding parts, without limits. A caller that its view covers costs no
 * call.
 */
function isolateOfParts(maxStalenessMs: number) {
  const rest = createRedisRest({ url: proxy.url, token: redis.token })
  const store = createRedisAdmissionStore(rest)
  const source = createRevocationFeedSource(rest)
  const feed = createRevocationFeed({ maxStalenessMs })
  const keysOf = createKeyCache(DEFAULT_KEYS)
  const marks = new Map<string, FeedMark>()
  const decided = { local: 0, remote: 0 }

  async function refresh(): Promise<FeedMark | undefined> {
    const [since, sentMs] = [feed.cursor, Date.now()]
    return feed.update(await source.since(since), sentMs)
  }

  async function send({ principal: who }: Caller): Promise<Outcome> {
    const keys = await keysOf(who, ADDRESS)
    const { revocation, bans } = keys
    const names = [...revocation.revokedBefore, ...bans].map((each) => each.key)
    if (revocation.token !== undefined) names.push(revocation.token)
    if (feed.needsRefresh(Date.now())) void refresh().catch(() => undefined)
    if (feed.holds(marks.get(who.subject), names, Date.now())) {
      decided.local += 1
      return 'admitted'
    }
    decided.remote += 1
    try {
      // The feed is read before the keys that it covers.
      const mark = await refresh()
      const nowMs = Date.now()
      const facts = await store.consult({ ...keys, limits: [], nowMs })
      const isRefused =
        revokedBy(who, revocation, facts) ?? findBan(bans, facts.bannedUntilSeconds, nowMs)
      if (isRefused !== undefined) return 'refused'
      if (mark !== undefined) marks.set(who.subject, mark)
      return 'admitted'
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      return 'unavailable'
    }
  }
  return { send, decided }
}

test(
  'no request is admitted later than the bound from a view, with Redis healthy, slow or hung',
  async () => {
    const isolates = Array.from({ length: ISOLATES }, () => isolateOfParts(BOUND_MS))
    const counts = await countLate({
      boundMs: BOUND_MS,
      revocations: REVOCATIONS,
      proxy,
      newCaller,
      revoke,
      isolates: isolates.map(({ send }) => send),
    })
    expect(counts.late, NEVER).toBe(0)
    expect(counts.revoked).toBe(REVOCATIONS)
    expect(counts.judged).toBeGreaterThanOrEqual(REVOCATIONS * ISOLATES)
    // The view is exercised up to its bound.
    expect(counts.within).toBeGreaterThan(0)
    expect(isolates.every(({ decided }) => decided.local > decided.remote)).toBe(true)
    if (process.env.REVOCATIONS !== undefined) console.info(counts)
  },
  TIMEOUT_MS,
)

test(
  'the count finds a view that exceeds its bound',
  async () => {
    const { late } = await countLate({
      boundMs: BOUND_MS,
      revocations: 30,
      proxy,
      newCaller,
      revoke,
      isolates: [isolateOfParts(BOUND_MS * 3).send],
    })
    expect(late).toBeGreaterThan(0)
  },
  TIMEOUT_MS,
)

test(
  'whole gateways with that bound in their policy keep it too',
  async () => {
    const policy = definePolicy({
      roles: { reader: ['orders:read'] },
      limits: {},
      routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
      revocation: { maxStalenessMs: BOUND_MS },
    })
    const gateways = Array.from({ length: ISOLATES }, () =>
      whole.client(policy, redisVars({ ...redis, url: proxy.url })),
    )
    const counts = await countLate({
      boundMs: BOUND_MS,
      revocations: REVOCATIONS,
      proxy,
      newCaller,
      revoke,
      isolates: gateways.map(({ send }) => async ({ token }: Caller) => {
        return outcomeOf((await send('/orders', ADDRESS, token)).status)
      }),
    })
    expect(counts.late, NEVER).toBe(0)
    expect(counts.revoked).toBe(REVOCATIONS)
    expect(counts.judged).toBeGreaterThanOrEqual(REVOCATIONS * ISOLATES)
    // Some requests were admitted from the view, so the bound is really exercised.
    expect(counts.within).toBeGreaterThan(0)
    expect(counts.before).toBeGreaterThan(0)
    if (process.env.REVOCATIONS !== undefined) console.info(counts)
  },
  TIMEOUT_MS,
)

test("an operator's token is revoked at once, whatever bound the policy has", async () => {
  const policy = definePolicy({
    roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
    limits: {},
    routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
    revocation: { maxStalenessMs: 60_000 },
    features: [operators()],
  })
  const { send } = whole.client(policy)
  const operator = await newCallerOf(key, ['reader', 'operator'])
  const statuses = async () => [
    (await send('/orders', ADDRESS, operator.token)).status,
    (await send('/-/admin/bans', ADDRESS, operator.token)).status,
  ]
  expect(await statuses()).toEqual([200, 200])
  await revoke(operator, 0)
  expect((await send('/orders', ADDRESS, operator.token)).status).toBe(200)
  expect((await send('/-/admin/bans', ADDRESS, operator.token)).status).toBe(401)
  // Now the isolate has cached the refusal.
  expect(await statuses()).toEqual([401, 401])
})
