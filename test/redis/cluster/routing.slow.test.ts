/** Calls to a real cluster: where they go, and what happens while slots move and sockets break. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkResp } from '../../../cli/doctor/resp.ts'
import { Misconfigured, Unavailable } from '../../../src/errors.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { replicationKeys } from '../../../src/redis/keys.ts'
import { allLanes, tagSlot } from '../../../src/redis/lanes.ts'
import { parseRedisUrl } from '../../../src/runtimes/node/environment/redis-url.ts'
import { clusterCalls } from '../../../src/runtimes/node/redis/cluster/calls.ts'
import { createClusterRouter } from '../../../src/runtimes/node/redis/cluster/router.ts'
import { redis as createRedis } from '../../../src/runtimes/node/redis/index.ts'
import { connectResp, type RespClient } from '../../../src/runtimes/node/redis/resp.ts'
import type { RespOptions } from '../../../src/runtimes/node/redis/socket/resp-client.ts'
import { ROOT } from '../../harness/process.ts'
import {
  type ClusterNode,
  moveSlot,
  startRedisCluster,
  type TestCluster,
} from '../../harness/redis-cluster.ts'
import { hasRedisServer, startRealServer } from '../../harness/resp-server.ts'

const LANES = 16
/** Increments the first key, and reads the second one, so that both must be on one node. */
const COUNT = 'redis.call("GET", KEYS[2]) return redis.call("INCR", KEYS[1])'

describe.skipIf(!hasRedisServer)('a cluster', () => {
  let cluster: TestCluster
  let client: RespClient
  let redis: RedisConnection
  const others: RespClient[] = []

  beforeAll(async () => {
    cluster = await startRedisCluster()
    client = connectResp({ url: `${cluster.url}/?lanes=${LANES}`, timeoutMs: 1_000 })
    expect(await client.check()).toEqual([])
    redis = client.connect({ timeoutMs: 1_000 })
  })
  afterAll(async () => {
    for (const each of [client, ...others]) each.close()
    await cluster.close()
  })

  /** Returns another client of the cluster. */
  function another(options: Partial<RespOptions> = {}): RespClient {
    const other = connectResp({ url: `${cluster.url}/?lanes=${LANES}`, ...options })
    others.push(other)
    return other
  }
  const mistakesOf = async (options: Partial<RespOptions>) => {
    const error = await another(options)
      .check()
      .catch((error: unknown) => error)
    return error instanceof Misconfigured ? error.mistakes : error
  }
  function lane(at: number): RedisConnection {
    const found = allLanes(redis)[at]
    if (found === undefined) throw new Error('there is no such lane')
    return found
  }
  async function placeOf({ keys }: RedisConnection) {
    const slot = Number(await cluster.nodes[0]?.direct.cluster('KEYSLOT', keys.prefix))
    const owner = await cluster.ownerOf(slot)
    const next = cluster.masters.find((node) => node !== owner)
    if (owner === undefined || next === undefined) throw new Error('the slot has no owner')
    return { slot, owner, next }
  }
  const countOn = async ({ direct }: ClusterNode, name: string) => {
    const line = (await direct.info('commandstats'))
      .split('\n')
      .find((each) => each.startsWith(`cmdstat_${name}:`))
    return Number(/calls=(\d+)/.exec(line ?? '')?.[1] ?? 0)
  }

  test('serves each lane from the master of its slot, and the connection itself too', async () => {
    expect(allLanes(redis)).toHaveLength(LANES)
    for (const each of [redis, ...allLanes(redis)]) {
      const key = `${each.keys.prefix}first`
      const { owner } = await placeOf(each)
      expect(
        await each.send([
          ['SET', key, '1'],
          ['GET', key],
        ]),
      ).toEqual([{ result: 'OK' }, { result: '1' }])
      expect(await owner.direct.get(key)).toBe('1')
    }
  })

  test('a write that a replica must have returns the replies of its commands', async () => {
    const key = `${lane(0).keys.prefix}written`
    expect(await lane(0).send([['SET', key, '1']], { acknowledgedBy: 1 })).toEqual([
      { result: 'OK' },
    ])
    await expect(lane(0).send([['SET', key, '1']], { acknowledgedBy: 2 })).rejects.toMatchObject({
      fault: 'timeout',
    })
  })

  test('writes of one moment share one WAIT at each master, and each has its own replies', async () => {
    const waits = async () =>
      (await Promise.all(cluster.masters.map((node) => countOn(node, 'wait')))).reduce(
        (sum, count) => sum + count,
      )
    const before = await waits()
    const replies = await Promise.all(
      allLanes(redis).map((each, at) =>
        each.send(
          [
            ['SET', `${each.keys.prefix}joined`, at],
            ['GET', `${each.keys.prefix}joined`],
          ],
          { acknowledgedBy: 1 },
        ),
      ),
    )
    expect(replies).toEqual(
      Array.from({ length: LANES }, (_, at) => [{ result: 'OK' }, { result: String(at) }]),
    )
    expect((await waits()) - before).toBe(cluster.masters.length)
  })

  test('a write that is sent on to another master waits for the replicas of that one', async () => {
    const moving = lane(6)
    const { slot, next } = await placeOf(moving)
    await moving.send([['SET', `${moving.keys.prefix}k`, '1']])
    await moveSlot(cluster, slot, next)
    const before = await countOn(next, 'wait')
    const key = `${moving.keys.prefix}k`
    expect(await moving.send([['SET', key, '2']], { acknowledgedBy: 1 })).toEqual([
      { result: 'OK' },
    ])
    expect(await countOn(next, 'wait')).toBe(before + 1)
  })

  test('a call with a key of another lane is a defect and reaches no server', async () => {
    await expect(lane(0).send([['GET', `${lane(1).keys.prefix}k`]])).rejects.toThrow(TypeError)
    await expect(redis.send([['GET', 'k']])).rejects.toThrow(TypeError)
    await expect(redis.send([['EVAL', 'return 1', 1, 'k']])).rejects.toThrow(TypeError)
  })

  test('while a slot moves, a command runs once, wherever its keys are, and afterwards too', async () => {
    const moving = lane(3)
    const [here, there, both] = ['here', 'there', 'both'].map((each) => moving.keys.prefix + each)
    const { slot, next } = await placeOf(moving)
    const increment = async (key = '') => (await moving.send([['INCR', key]]))[0]?.result
    expect(await increment(here)).toBe(1)
    await moving.send([['SET', both ?? '', '1']])
    let waiting: Promise<unknown> | undefined
    await moveSlot(cluster, slot, next, async () => {
      // The old master has this key still, and a new key belongs to the new master (ASK).
      expect(await increment(here)).toBe(2)
      expect(await increment(there)).toBe(1)
      // One key is on each node, so that no node can run the script (TRYAGAIN).
      waiting = moving.send([['EVAL', COUNT, 2, there ?? '', both ?? '']])
      await expect
        .poll(async () => {
          const errors = await Promise.all(
            cluster.masters.map(({ direct }) => direct.info('errorstats')),
          )
          return errors.join()
        })
        .toContain('errorstat_TRYAGAIN')
    })
    expect(await waiting).toEqual([{ result: 2 }])
    // The table still names the old master (MOVED).
    expect(await increment(here)).toBe(3)
    const before = await countOn(next, 'incr')
    expect(await increment(there)).toBe(3)
    expect(await countOn(next, 'incr')).toBe(before + 1)
  })

  test('a call whose socket is lost before the reply fails, and is not sent again [R44]', async () => {
    const { owner } = await placeOf(lane(5))
    const key = `${lane(5).keys.prefix}once`
    const call = lane(5).send([
      ['INCR', key],
      ['BLPOP', `${lane(5).keys.prefix}never`, 0],
    ])
    const failed = expect(call).rejects.toMatchObject({ fault: 'unreachable' })
    await expect.poll(() => owner.direct.get(key)).toBe('1')
    await owner.direct.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await failed
    await expect
      .poll(() =>
        lane(5)
          .send([['GET', key]])
          .catch(() => undefined),
      )
      .toEqual([{ result: '1' }])
  })

  test('a refund whose socket is gone fails, and does not count against the master', async () => {
    const outcomes: string[] = []
    const failures: string[] = []
    const breaker = { enter: () => 0, succeeded() {}, failed: () => void failures.push('failed') }
    const counted = client.connect({ breaker, onCall: (outcome) => void outcomes.push(outcome) })
    const over = {}
    const ping = [['EXISTS', `${counted.keys.prefix}any`]]
    await counted.send(ping, { over })
    const owner = await cluster.ownerOf(tagSlot('c'))
    await owner?.direct.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await expect.poll(() => counted.send(ping).catch(() => undefined)).toBeDefined()
    const before = [outcomes.length, failures.length]
    await expect(counted.send(ping, { over })).rejects.toMatchObject({ fault: 'unreachable' })
    expect([outcomes.length, failures.length]).toEqual(before)
  })

  test('a refund is sent while its master must prove itself, and no other call is', async () => {
    const target = parseRedisUrl(cluster.url)
    if (target === undefined) throw new Error('the URL is invalid')
    const [slot, prefix] = [tagSlot('c'), redis.keys.prefix]
    let isProven = true
    const router = createClusterRouter({
      ...{ target, silenceMs: 5_000, fenceMs: Number.POSITIVE_INFINITY, verifiedSlots: [slot] },
      async verify() {
        if (!isProven) throw new Error('the master has lost its keys')
      },
    })
    try {
      const send = clusterCalls(router, { timeoutMs: 5_000 })({ slot, prefix, isWriter: false })
      const key = `${prefix}taken`
      const over = {}
      expect(await send([['INCR', key]], { over })).toEqual([{ result: 1 }])
      isProven = false
      const node = router.ownerOf(slot)
      node?.disbelieve()
      await expect(send([['GET', key]])).rejects.toBeInstanceOf(Unavailable)
      expect(await send([['DECR', key]], { once: true, over })).toEqual([{ result: 0 }])
      expect(node?.isBelieved()).toBe(false)
    } finally {
      router.close()
    }
  })

  test('another number of lanes is refused at the start, and by each call', async () => {
    const url = `${cluster.url}/?lanes=8`
    expect(await mistakesOf({ url })).toEqual([
      'REDIS_URL: has 8 lanes, but the keys of this cluster are in 16 lanes; set ?lanes=16',
    ])
    const other = another({ url }).connect({})
    await expect(other.send([['PING']])).rejects.toMatchObject({ fault: 'refused' })
  })

  test('settings that lose revocations are refused at the start', async () => {
    const [first, second] = cluster.masters
    expect(await mistakesOf({ fenceMs: 1_750, timeoutMs: 250 })).toEqual([
      expect.stringMatching(/^REDIS_FENCE_MS: 1750 ms and the deadline of 250 ms must be less/),
    ])
    expect(await mistakesOf({ fenceMs: 1_749, timeoutMs: 250 })).toEqual([])
    expect(await mistakesOf({ replicasAcked: 2 })).toEqual([
      expect.stringMatching(/^REDIS_REPLICAS_ACKED: 2 must have a revocation, .* has 1;/),
    ])
    await first?.direct.config('SET', 'maxmemory-policy', 'volatile-lru')
    await second?.direct.config('SET', 'cluster-require-full-coverage', 'yes')
    const eviction = expect.stringMatching(/maxmemory-policy volatile-lru, and an evicted/)
    const coverage = expect.stringMatching(/cluster-require-full-coverage yes/)
    expect(await mistakesOf({})).toEqual(expect.arrayContaining([eviction, coverage]))
    expect(await mistakesOf({ acceptsEviction: true })).toEqual([coverage])
    await second?.direct.config('SET', 'cluster-require-full-coverage', 'no')
    await second?.direct.config('SET', 'cluster-allow-reads-when-down', 'yes')
    const reads = expect.stringMatching(/cluster-allow-reads-when-down yes/)
    expect(await mistakesOf({ acceptsEviction: true })).toEqual([reads])
    await second?.direct.config('SET', 'cluster-allow-reads-when-down', 'no')
    expect(await another({ acceptsEviction: true }).check()).toEqual([eviction])
    await first?.direct.config('SET', 'maxmemory-policy', 'noeviction')
  })

  describe('an ACL user', () => {
    /** Gives each node the user, and returns the URL of the cluster with it. */
    async function urlOf(rights: readonly string[]) {
      const named = ['RESET', 'on', '>secret', ...rights]
      for (const { direct } of cluster.nodes) await direct.acl('SETUSER', 'gateway', ...named)
      return `${cluster.url.replace('//', '//gateway:secret@')}/?lanes=${LANES}`
    }
    const documented = async () => {
      const page = await readFile(join(ROOT, 'docs/redis-cluster.md'), 'utf8')
      const rights = /^ACL SETUSER gateway on >… (.*)$/m.exec(page)?.[1]?.split(' ') ?? []
      expect(rights).toContain('-@dangerous')
      return rights
    }

    test('with the documented rights is served, and the settings of the cluster are checked [R31]', async () => {
      const url = await urlOf(await documented())
      expect(await another({ url }).check()).toEqual([])
      expect(await mistakesOf({ url, fenceMs: 1_900 })).toEqual([
        expect.stringMatching(/^REDIS_FENCE_MS: .* less than cluster-node-timeout/),
      ])
      const user = another({ url }).connect({ timeoutMs: 1_000 })
      const key = `${user.keys.prefix}by-the-user`
      expect(await user.send([['SET', key, 1]], { acknowledgedBy: 1 })).toEqual([{ result: 'OK' }])
      expect(await user.send([['EVAL', 'return 1', 1, key]])).toEqual([{ result: 1 }])
    })

    test('that may not read settings gets a warning at the start and from doctor', async () => {
      const rights = await documented()
      const url = await urlOf(rights.filter((right) => right !== '+config|get'))
      const text = expect.stringMatching(/may not run CONFIG GET, so the settings .* not checked/)
      expect(await another({ url }).check()).toEqual([text])
      expect(await checkResp({ url, prefix: 'pc:', timeoutMs: 250 })).toContainEqual(
        expect.objectContaining({ level: 'warning', seen: text }),
      )
    })
  })

  test('a guard of an app completes facts that a process has left', async () => {
    const app = createRedis(`${cluster.url}/?lanes=${LANES}`)
    const { pendingFacts } = replicationKeys(app.keys)
    const owner = await cluster.ownerOf(tagSlot('c'))
    await owner?.direct.zadd(pendingFacts, 1, '* revoked:left')
    try {
      await expect
        .poll(() => app.send([['EXISTS', `${app.keys.prefix}any`]]).catch(() => undefined))
        .toBeDefined()
      await expect.poll(() => owner?.direct.zcard(pendingFacts), { timeout: 10_000 }).toBe(0)
    } finally {
      app.close()
    }
  })

  test('doctor checks a cluster as the gateway uses it', async () => {
    const target = { url: `${cluster.url}/?lanes=${LANES}`, prefix: 'pc:', timeoutMs: 250 }
    const findings = await checkResp(target)
    expect(findings.filter(({ level }) => level === 'error')).toEqual([])
    expect(findings).toContainEqual({
      level: 'ok',
      check: 'redis',
      seen: `a cluster of 3 masters, ${LANES} lanes`,
    })
    expect(findings).toContainEqual(
      expect.objectContaining({ level: 'ok', check: 'redis scripts' }),
    )
    const wrong = await checkResp({ ...target, fenceMs: 1_900 })
    expect(wrong).toEqual([expect.objectContaining({ level: 'error', check: 'redis' })])
  })

  test('a URL of one server is refused for a cluster, and the other way round', async () => {
    const [{ port } = { port: 0 }] = cluster.masters
    expect(await mistakesOf({ url: `redis://127.0.0.1:${port}` })).toEqual([
      'REDIS_URL: is a Redis Cluster; set redis+cluster://host:port',
    ])
    const server = await startRealServer([])
    expect(await mistakesOf({ url: `redis+cluster://127.0.0.1:${server.port}` })).toEqual([
      'REDIS_URL: is not a Redis Cluster; set redis://host:port',
    ])
    await server.close()
  })
})
