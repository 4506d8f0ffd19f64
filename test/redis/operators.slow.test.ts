import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createBanList } from '../../src/access/abuse/redis/bans.ts'
import { createOverrideList } from '../../src/access/admission/redis/limit-overrides.ts'
import { createRevocationLog } from '../../src/access/revocation/redis/revocation-log.ts'
import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import { createApiKeys } from '../../src/access/tokens/redis/api-keys.ts'
import { Unavailable } from '../../src/errors.ts'
import { createConsents } from '../../src/features/authorization-code/redis/consents.ts'
import { createWithdrawal } from '../../src/features/authorization-code/withdrawal.ts'
import { createMcpTools } from '../../src/features/console/mcp-tools.ts'
import type { RedisConnection, RedisReply } from '../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { ALL_REDIS_PROTOCOLS } from '../harness/redis-protocols.ts'

const NOW_MS = 1_795_183_974_000
const ISSUER = 'https://issuer.test'
const REVOCATION = {
  kind: 'subject',
  value: 'alice',
  issuer: undefined,
  issuers: [ISSUER, 'https://other.test'],
  createdBy: 'olga',
  ttlSeconds: 600,
} as const
const BAN = {
  kind: 'subject',
  value: 'alice',
  seconds: 600,
  issuer: ISSUER,
  issuers: [ISSUER],
  createdBy: 'olga',
} as const
const OVERRIDE = {
  limit: 'few',
  value: 'alice',
  requests: 5,
  issuer: undefined,
  windows: ['few:subject:a:alice', 'few:subject:b:alice'],
  createdBy: 'olga',
} as const
const API_KEY = { name: 'robot', subject: 'robot' }

const stores = (rest: RedisConnection, nowMs = NOW_MS) => ({
  revocations: createRevocationLog(rest, () => nowMs),
  bans: createBanList(rest, () => nowMs),
  overrides: createOverrideList(rest, () => nowMs),
  apiKeys: createApiKeys({ redis: rest, publicUrl: ISSUER, now: () => nowMs }),
  consents: createConsents(rest, () => nowMs),
  withdrawal: createWithdrawal({
    consents: createConsents(rest, () => nowMs),
    revoker: createRevocations(rest, () => nowMs),
    issuer: ISSUER,
    now: () => nowMs,
  }),
  tools: createMcpTools(rest, () => nowMs),
})
const orders: readonly (readonly [string, (rest: RedisConnection) => Promise<unknown>])[] = [
  ['a revocation', (rest) => stores(rest).revocations.create(REVOCATION)],
  ['a ban', (rest) => stores(rest).bans.create(BAN)],
  ['an override', (rest) => stores(rest).overrides.create(OVERRIDE)],
  ['an API key', (rest) => stores(rest).apiKeys.create(API_KEY, 'olga')],
]

type Stores = ReturnType<typeof stores>
type Remove = (of: Stores) => Promise<boolean>

const USER = { issuer: ISSUER, subject: 'alice', tenant: undefined }
const CONSENT = { client: 'app', name: 'app', redirectUri: 'https://app.test/', scopes: [] }

/** Each stores something, and returns what removes it. */
const removals: readonly (readonly [string, (of: Stores) => Promise<Remove>])[] = [
  [
    'a revocation',
    async ({ revocations }) => {
      const { id } = await revocations.create(REVOCATION)
      return (of) => of.revocations.remove(id)
    },
  ],
  [
    'a ban',
    async ({ bans }) => {
      const { id } = await bans.create(BAN)
      return (of) => of.bans.remove(id)
    },
  ],
  [
    'an override',
    async ({ overrides }) => {
      const { id } = await overrides.create(OVERRIDE)
      return (of) => of.overrides.remove(id)
    },
  ],
  [
    'an API key',
    async ({ apiKeys }) => {
      const { key } = await apiKeys.create(API_KEY, 'olga')
      return (of) => of.apiKeys.end(key.id)
    },
  ],
  [
    'a consent',
    async ({ consents }) => {
      const consent = { ...CONSENT, audiences: [], allowedAtSeconds: NOW_MS / 1000 }
      const session = { id: 's1', expiresAtSeconds: NOW_MS / 1000 + 600 }
      await consents.allow(USER, consent, { session, ended: [], isRepeated: false })
      return (of) => of.withdrawal.withdraw(USER, 'app')
    },
  ],
  [
    'the approval of a tool',
    async ({ tools }) => {
      const approval = { hash: 'a', atSeconds: NOW_MS / 1000, createdBy: 'olga' }
      await tools.approve('/mcp', 'search', approval)
      return (of) => of.tools.withdraw('/mcp', 'search')
    },
  ],
]

describe.each(ALL_REDIS_PROTOCOLS)('orders of operators ($name)', ({ prefer, connect }) => {
  let redis: TestRedis
  let rest: RedisConnection
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
    rest = connect(redis)
  })
  afterAll(() => redis.close())
  beforeEach(() => redis.direct.flushall())

  test.each(orders)(
    '%s is written in one command, so it is never half written [R20]',
    async (_, order) => {
      const writes: string[][] = []
      const watched: RedisConnection = {
        keys: DEFAULT_KEYS,
        send(commands) {
          const words = commands.map(([word]) => String(word))
          if (words.some((word) => !['GET', 'MGET', 'ZREVRANGE'].includes(word))) writes.push(words)
          return rest.send(commands)
        },
      }
      await order(watched)
      expect(writes).toEqual([['EVAL']])
    },
  )

  test('an effect that cannot be written leaves no record [R20]', async () => {
    const key = `pc:cutoff:subject:${encodeURIComponent(ISSUER)}:alice`
    await redis.direct.rpush(key, 'not a cut-off')
    const { revocations } = stores(rest)
    await expect(revocations.create(REVOCATION)).rejects.toBeInstanceOf(Unavailable)
    expect((await revocations.list({ limit: 9 })).items).toEqual([])
    await redis.direct.set(key, 'nonsense')
    await expect(revocations.create(REVOCATION)).rejects.toBeInstanceOf(Unavailable)
    expect((await revocations.list({ limit: 9 })).items).toEqual([])
  })

  test('an order that is repeated after an outage has the effect of one', async () => {
    const { bans } = stores(rest)
    const [first, second] = [await bans.create(BAN), await bans.create(BAN)]
    const key = `pc:ban:subject:${encodeURIComponent(ISSUER)}:alice`
    expect(await redis.direct.get(key)).toBe(String(NOW_MS / 1000 + 600))
    expect(await bans.remove(first.id)).toBe(true)
    expect(await redis.direct.get(key)).toBe(String(NOW_MS / 1000 + 600))
    expect(await bans.remove(second.id)).toBe(true)
    expect(await redis.direct.exists(key)).toBe(0)
    expect(await bans.remove(second.id)).toBe(false)
  })

  test.each(removals)(
    'the end of %s whose first reply is lost is reported as its end',
    async (_, act) => {
      const losing: RedisConnection = {
        ...rest,
        async send(commands, options) {
          // A connection without a reply sends the call a second time.
          if (!options?.once) await rest.send(commands, options)
          return rest.send(commands, options)
        },
      }
      const remove = await act(stores(rest))
      expect(await remove(stores(losing))).toBe(true)
      expect(await remove(stores(losing))).toBe(false)
    },
  )

  test('after fifty simultaneous bans and removals, exactly the remaining ban is in force', async () => {
    const { bans } = stores(rest)
    const all = await Promise.all(Array.from({ length: 50 }, () => bans.create(BAN)))
    await Promise.all(all.slice(0, 49).map(({ id }) => bans.remove(id)))
    const key = `pc:ban:subject:${encodeURIComponent(ISSUER)}:alice`
    expect(await redis.direct.exists(key)).toBe(1)
    expect((await bans.list({ limit: 200 })).items.map(({ id }) => id)).toEqual([all[49]?.id])
    await bans.remove(all[49]?.id ?? '')
    expect(await redis.direct.keys('*alice*')).toEqual([])
  })

  test('the remains of an expired ban do not extend the next ban', async () => {
    await stores(rest).bans.create({ ...BAN, seconds: 9_000 })
    const later = NOW_MS + 10_000_000
    const { bans } = stores(rest, later)
    await bans.create({ ...BAN, seconds: 60 })
    const holders = await redis.direct.hvals(
      `pc:holders:pc:ban:subject:${encodeURIComponent(ISSUER)}:alice`,
    )
    expect(holders.filter((held) => Number(held.split(' ')[1]) <= later / 1000)).toEqual([])
  })

  test('expired ids leave the lists, at most ten for each write and a thousand for each read', async () => {
    const ended = Array.from({ length: 1_500 }, (_, index) => `${index}`.padStart(8, '0'))
    for (const id of ended) {
      await redis.direct.zadd('pc:bans', 0, id)
      await redis.direct.zadd('pc:bans:ends', 1, id)
    }
    const { bans } = stores(rest)
    const { id } = await bans.create(BAN)
    expect(await redis.direct.zcard('pc:bans')).toBe(1_491)
    await bans.list({ limit: 1 })
    expect(await redis.direct.zcard('pc:bans')).toBe(491)
    const { items } = await bans.list({ limit: 9 })
    expect(items.map((item) => item.id)).toEqual([id])
    expect(await redis.direct.zrange('pc:bans:ends', 0, -1)).toEqual([id])
  })

  test('an invalid record is Unavailable, not a missing item of the list', async () => {
    const { bans, apiKeys } = stores(rest)
    const { id } = await bans.create(BAN)
    for (const text of ['{}', 'nonsense', '[]', '{"id":"x"}']) {
      await redis.direct.set(`pc:ban-record:${id}`, text)
      await expect(bans.list({ limit: 9 })).rejects.toBeInstanceOf(Unavailable)
      await expect(bans.remove(id)).rejects.toBeInstanceOf(Unavailable)
    }
    const { key } = await apiKeys.create(API_KEY, 'olga')
    await redis.direct.set(`pc:api-key:${key.id}`, '{}')
    await expect(apiKeys.rotate(key.id)).rejects.toBeInstanceOf(Unavailable)
    await expect(apiKeys.end(key.id)).rejects.toBeInstanceOf(Unavailable)
  })
})

describe('a malformed reply of Redis is Unavailable [R20]:', () => {
  const answers: readonly (readonly [string, RedisReply])[] = [
    ['an error', { error: 'OOM command not allowed' }],
    ['text', { result: 'OK' }],
    ['nothing', { result: null }],
    ['a list', { result: [1] }],
    ['an object', { result: {} }],
  ]
  const replying = (reply: RedisReply): RedisConnection => ({
    keys: DEFAULT_KEYS,
    send: async (commands) =>
      commands.map(([word]) => (word === 'ZREVRANGE' ? { result: [] } : reply)),
  })

  describe.each(answers)('%s', (_, reply) => {
    test.each(orders)('for %s', async (_name, order) => {
      await expect(order(replying(reply))).rejects.toBeInstanceOf(Unavailable)
    })

    test('for a list', async () => {
      const { bans } = stores(replying(reply))
      const read = bans.list({ limit: 5 })
      if (JSON.stringify(reply) === '{"result":[1]}')
        await expect(read).rejects.toMatchObject({ fault: 'malformed' })
      await expect(read).rejects.toBeInstanceOf(Unavailable)
    })
  })

  test('for the expiry of API keys', async () => {
    for (const result of [null, 'x', ['id'], ['id', 'soon']]) {
      const rest: RedisConnection = {
        keys: DEFAULT_KEYS,
        send: async (commands) =>
          commands.map(([word]) => (word === 'ZREVRANGE' ? { result } : { result: 1 })),
      }
      const created = stores(rest).revocations.create(REVOCATION)
      await expect(created).rejects.toBeInstanceOf(Unavailable)
    }
  })
})
