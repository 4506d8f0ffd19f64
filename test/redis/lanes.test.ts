import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { REDIS_SERVER } from '../../dev/redis.ts'
import { withBroadcast } from '../../src/access/revocation/redis/broadcast.ts'
import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import { Unavailable } from '../../src/errors.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { createKeys, DEFAULT_KEYS, type RedisKeys, replicationKeys } from '../../src/redis/keys.ts'
import {
  allLanes,
  CONTROL_TAG,
  createLanes,
  laneIndex,
  laneOf,
  laneTags,
  SLOTS,
  tagSlot,
} from '../../src/redis/lanes.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { secretDigest } from '../../src/runtimes/node/redis/cluster/digest.ts'
import { withLanes } from '../harness/lanes.ts'
import { freePort, run } from '../harness/process.ts'
import { startTestRedis } from '../harness/redis.ts'
import { hasRedisServer } from '../harness/resp-server.ts'

const connect = (keys: RedisKeys, slot: number): RedisConnection & { slot: number } => ({
  keys,
  slot,
  send: async () => [],
})

describe('tags', () => {
  test.each([1, 3, 64, 256, 1024])(
    '%i lanes have different tags in the middle of their shares',
    (count) => {
      const tags = laneTags(count)
      expect(new Set(tags).size).toBe(count)
      expect(tags).not.toContain(CONTROL_TAG)
      for (const [lane, tag] of tags.entries()) {
        const middle = ((lane + 0.5) * SLOTS) / count
        expect(Math.abs(tagSlot(tag) - middle)).toBeLessThan(SLOTS / count / 2)
      }
    },
  )

  test('the tags of 4 and of 64 lanes never change, because stored keys have them', () => {
    expect(laneTags(4)).toEqual(['5nw', 'h85', '7l1', 'b3k'])
    expect(laneTags(64).join(' ')).toBe(
      '53t j3j if5 kec 574 74b akm 6bk 96a frw mj8 oin d1i 38o mnx xw he6 box 40w c9q hav 7ah ' +
        '447 67a 1js fcu 85b m5 1n3 3me e2j iu 712 52d cmk 4dm 75r h5l 7av ice 3y7 1za 2k6 8ax ' +
        'wu7 931 yg 8e8 7d8 5gn 621 41g jc0 qkn 66q i6o 3h5 1kc 2z4 84r 3lu des he 802',
    )
  })

  test.skipIf(!hasRedisServer)('the slots are those of a cluster', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'lanes-'))
    const port = await freePort()
    const node = await run(
      [
        ...([REDIS_SERVER, '--port', String(port)] as const),
        ...['--bind', '127.0.0.1', '--save', '', '--dir', folder],
        ...['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())],
      ],
      {},
      'Ready to accept connections',
    )
    const redis = new Redis(port, '127.0.0.1')
    try {
      const tags = [CONTROL_TAG, ...laneTags(64)]
      const slots = tags.map((tag) => redis.cluster('KEYSLOT', `pc:{${tag}}:limit:a`))
      expect(await Promise.all(slots)).toEqual(tags.map(tagSlot))
    } finally {
      redis.disconnect()
      await node.stop()
      rmSync(folder, { recursive: true })
    }
  })
})

describe('lanes', () => {
  test('the lane of a value never changes, because stored keys are in it', () => {
    expect(['', 'alice', '192.0.2.7', 'é😀'].map((value) => laneIndex(value, 64))).toEqual([
      11, 41, 11, 44,
    ])
  })

  test('10,000 subjects are spread evenly over 64 lanes', () => {
    const sizes = new Array<number>(64).fill(0)
    for (let n = 0; n < 10_000; n++) {
      const lane = laneIndex(`user-${n}`, 64)
      sizes[lane] = (sizes[lane] ?? 0) + 1
    }
    // 156 on average. A random function stays within 5 standard deviations.
    expect(Math.min(...sizes)).toBeGreaterThan(94)
    expect(Math.max(...sizes)).toBeLessThan(219)
  })

  test('every key of a lane, and none of another one, has its tag', () => {
    const redis = createLanes({ prefix: 'gw:', count: 4, connect, digest: secretDigest })
    expect(redis.keys).toEqual(createKeys('gw:{c}:'))
    expect(redis.lanes.all.map(({ keys }) => keys.prefix)).toEqual(
      laneTags(4).map((tag) => `gw:{${tag}}:`),
    )
    expect(allLanes(redis)).toBe(redis.lanes.all)
    expect(laneOf(redis, 'alice')).toBe(redis.lanes.all[laneIndex('alice', 4)])
  })

  test('a connection to one server is its own and only lane', () => {
    const redis = connect(DEFAULT_KEYS, 0)
    expect(laneOf(redis, 'alice')).toBe(redis)
    expect(allLanes(redis)).toEqual([redis])
  })

  test.each([
    ['pc:{x}:', 4],
    ['pc:', 0],
    ['pc:', 1.5],
    ['pc:', 1025],
  ])('the prefix %s with %f lanes is refused', (prefix, count) => {
    expect(() => createLanes({ prefix, count, connect, digest: secretDigest })).toThrow(RangeError)
  })
})

describe('changes that lanes do not have yet', () => {
  const COUNT = 4
  const now = () => Date.now()

  test('of an earlier version are completed in the lanes that they name, and those of this one are hidden from it', async () => {
    const redis = await startTestRedis()
    const { direct } = redis
    const { url, token } = redis
    const own = withLanes(createRedisRest({ url, token, timeoutMs: 5_000 }), COUNT)
    const { pendingFacts, facts } = replicationKeys(own.keys)
    const lanesWith = async (name: string) => {
      const keys = own.lanes.all.map((lane) => lane.keys.prefix + name)
      return (await Promise.all(keys.map((key) => direct.exists(key)))).map(Boolean)
    }
    try {
      await direct.flushall()
      // Its marks have no version: the name of the fact, with its lane.
      for (const [name, lane] of [
        ['revoked:all', '*'],
        ['revoked:one', '2'],
      ] as const) {
        await direct.set(own.keys.prefix + name, '1', 'EX', 60)
        await direct.zadd(pendingFacts, 1, `${lane} ${name}`)
      }
      expect(await own.broadcast.complete(now)).toBe(2)
      expect(await lanesWith('revoked:all')).toEqual([true, true, true, true])
      expect(await lanesWith('revoked:one')).toEqual([false, false, true, false])
      expect(await direct.zcard(pendingFacts)).toBe(0)
      expect((await direct.zrange(facts, 0, -1)).sort()).toEqual(['* revoked:all', '2 revoked:one'])

      const send = () => Promise.reject(new Unavailable('redis', 'unreachable'))
      const away = own.lanes.all.map((lane) => ({ ...lane, send }))
      const failing = withBroadcast({ ...own, lanes: { ...own.lanes, all: away } })
      const cutoff = { kind: 'tenant', issuer: 'i', value: 'acme' } as const
      const times = { atSeconds: now() / 1000, ttlSeconds: 60 }
      await expect(
        createRevocations(failing, now).revokeBefore({ ...cutoff, ...times }),
      ).rejects.toBeInstanceOf(Unavailable)
      const [mark = ''] = await direct.zrange(pendingFacts, 0, -1)
      expect(mark).toMatch(/^\d{16} \* cutoff:/)
      // The earlier version reads marks up to the present microsecond.
      const present = `${(now() + 60_000) * 1_000}`
      expect(await direct.zrangebyscore(pendingFacts, '-inf', present)).toEqual([])
      expect(await own.broadcast.complete(now)).toBe(0)
      await direct.zincrby(pendingFacts, -3e6, mark)
      expect(await own.broadcast.complete(now)).toBe(1)
      expect(await direct.zcard(pendingFacts)).toBe(0)
    } finally {
      await redis.close()
    }
  })

  test('stay marked if an earlier version writes them again while they are copied', async () => {
    const redis = await startTestRedis()
    const { direct, url, token } = redis
    const server = createRedisRest({ url, token, timeoutMs: 5_000 })
    const again = { isDue: true }
    const own = withLanes(
      {
        ...server,
        async send(commands, options) {
          const replies = await server.send(commands, options)
          const isCopy = commands.some((command) =>
            command.some((each) => /:copied:/.test(`${each}`)),
          )
          // Its new mark replaces the old one.
          if (isCopy && again.isDue)
            await direct.zadd('pc:pending-facts', Date.now() * 1_000 + 1e6, '* revoked:again')
          return replies
        },
      },
      COUNT,
    )
    try {
      await direct.flushall()
      await direct.set('pc:revoked:again', '1', 'EX', 60)
      await direct.zadd('pc:pending-facts', 1, '* revoked:again')
      await own.broadcast.complete(now)
      expect(await direct.zcard('pc:pending-facts')).toBe(1)
      again.isDue = false
      await direct.zadd('pc:pending-facts', 1, '* revoked:again')
      await own.broadcast.complete(now)
      expect(await direct.zcard('pc:pending-facts')).toBe(0)
    } finally {
      await redis.close()
    }
  })
})
