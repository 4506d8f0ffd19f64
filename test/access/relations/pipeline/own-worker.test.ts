/** The middlewares of relations on their own, as a user's Worker combines them. */
import { Hono } from 'hono'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  admit,
  authorize,
  clientAddress,
  compileModel,
  createAdmission,
  createAuthorizer,
  createRedisDecisionPoint,
  createRedisRest,
  createRelationCache,
  createRelationCheck,
  createRelationChecker,
  createRelationRule,
  createUpstashAdmissionStore,
  type GatewayVariables,
  problemHandler,
  type RelationOptions,
} from '../../../../src/parts.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { principal } from '../../admission/callers.ts'
import { startWorld, type World } from './gateway.ts'
import { MODEL } from './model.ts'

/** Maximum age of a decision in these tests. */
const BOUND_MS = 1_000
const model = compileModel(MODEL)
const check = createRelationCheck(model)
const authorizer = createAuthorizer(new Map([['reader', ['notes:read']]]))
const ruleOf = (relation: string, param = 'id') =>
  createRelationRule({ model, object: `order:{params.${param}}`, relation })

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world?.close())
beforeEach(async () => {
  await world.redis.direct.flushall()
  await world.write(null, 'order:1#viewer@user:anne', 'order:2#owner@user:anne')
})

/** A test clock that advances during a call to Redis. */
interface Slow {
  nowMs: number
  tripMs: number
}

/**
 * Creates an app in which Anne is the caller. `admitRelation` is the relation of `admit`,
 * `authorizeRelation` that of `authorize`.
 */
function appOf(
  path: string,
  admitRelation: string | undefined,
  authorizeRelation: string,
  { param = 'id', slow }: { readonly param?: string; readonly slow?: Slow } = {},
) {
  const { send } = createRedisRest({ ...world.redis, timeoutMs: 20_000 })
  const rest: RedisConnection = {
    keys: DEFAULT_KEYS,
    async send(commands, options) {
      const replies = await send(commands, options)
      if (slow) slow.nowMs += slow.tripMs
      return replies
    },
  }
  const now = slow ? () => slow.nowMs : Date.now
  const admission = createAdmission({
    store: createUpstashAdmissionStore(rest, check),
    now,
  })
  const checker = createRelationChecker({
    decisionPoint: createRedisDecisionPoint(rest, check),
    issuers: new Set([anne.issuer]),
    ...(slow && { cache: createRelationCache({ maxStalenessMs: BOUND_MS, maxEntries: 10 }) }),
    isIncludedInAdmission: true,
    now,
  })
  const optionsOf = (relation: string, of: string): RelationOptions => ({
    rule: ruleOf(relation, of),
    checker,
  })
  const app = new Hono<{ Variables: GatewayVariables }>()
  app.onError(problemHandler())
  app.use(clientAddress())
  app.use(async (c, next) => {
    c.set('portcullis.principal', anne)
    await next()
  })
  app.get(
    path,
    admit({
      admission,
      relation: admitRelation === undefined ? undefined : optionsOf(admitRelation, 'id'),
    }),
    authorize({
      authorizer,
      permission: 'notes:read',
      relation: optionsOf(authorizeRelation, param),
    }),
    (c) => c.text('reached'),
  )
  return {
    checker,
    async statusOf(target: string) {
      const before = world.redis.calls()
      const { status } = await app.request(target)
      return [status, world.redis.calls() - before]
    },
  }
}

const anne = principal({ subject: 'anne', tenant: undefined, roles: ['reader'], scopes: [] })

describe('a Worker that combines the middlewares itself', () => {
  test('checks the relation of authorize within the call of admit', async () => {
    const { statusOf } = appOf('/notes/:id', 'viewer', 'viewer')
    await statusOf('/notes/1')
    expect(await statusOf('/notes/1')).toEqual([200, 1])
    expect(await statusOf('/notes/3')).toEqual([403, 1])
  })

  test('that gives admit no relation checks it in authorize, with its own call', async () => {
    const { statusOf } = appOf('/notes/:id', undefined, 'viewer')
    await statusOf('/notes/1')
    expect(await statusOf('/notes/1')).toEqual([200, 2])
    expect(await statusOf('/notes/3')).toEqual([403, 2])
  })

  test('is decided by the relation of authorize, not by the result for another rule or object', async () => {
    const other = appOf('/notes/:id', 'viewer', 'owner')
    await other.statusOf('/notes/1')
    expect(await other.statusOf('/notes/1')).toEqual([403, 2])
    expect(await other.statusOf('/notes/2')).toEqual([200, 2])
    const { statusOf } = appOf('/notes/:id/:other', 'viewer', 'viewer', {
      param: 'other',
    })
    expect((await statusOf('/notes/1/3'))[0]).toBe(403)
    expect((await statusOf('/notes/3/1'))[0]).toBe(200)
  })

  test('caches the result of admit from the time of the query, not of the answer', async () => {
    const slow = { nowMs: Date.now(), tripMs: 0 }
    const { statusOf } = appOf('/notes/:id', 'viewer', 'viewer', { slow })
    await statusOf('/notes/3')
    const queriedMs = slow.nowMs
    slow.tripMs = BOUND_MS / 2
    expect(await statusOf('/notes/1')).toEqual([200, 1])
    slow.tripMs = 0
    await world.remove(null, 'order:1#viewer@user:anne')
    slow.nowMs = queriedMs + BOUND_MS - 1
    expect((await statusOf('/notes/1'))[0]).toBe(200)
    slow.nowMs = queriedMs + BOUND_MS
    expect((await statusOf('/notes/1'))[0]).toBe(403)
  })

  test('caches the result of authorize from the time of the query as well', async () => {
    const slow = { nowMs: Date.now(), tripMs: BOUND_MS / 2 }
    const { checker } = appOf('/notes/:id', undefined, 'viewer', { slow })
    const query = {
      tenant: null,
      object: 'order:1',
      relation: 'viewer',
      subject: 'user:anne',
      contextualTuples: [],
    }
    const queriedMs = slow.nowMs
    expect(await checker.check(query)).toEqual({ outcome: 'allowed' })
    await world.remove(null, 'order:1#viewer@user:anne')
    slow.nowMs = queriedMs + BOUND_MS - 1
    expect(await checker.check(query)).toEqual({ outcome: 'allowed' })
    slow.nowMs = queriedMs + BOUND_MS
    expect(await checker.check(query)).toEqual({ outcome: 'denied' })
  })

  test('with a store that does not support relations fails with an explanation and admits no caller', async () => {
    const rest = createRedisRest({ ...world.redis, timeoutMs: 20_000 })
    const store = createUpstashAdmissionStore(rest)
    const query = { tenant: null, object: 'order:1', relation: 'viewer', subject: 'user:anne' }
    const admission = createAdmission({ store, now: Date.now })
    const relation = { ...query, contextualTuples: [] }
    await expect(
      admission.admit({ principal: anne, address: '192.0.2.1', limits: [], relation }),
    ).rejects.toThrow(TypeError)
  })
})
