/** Failures of masters of a real cluster: what is admitted, what is refused, and what comes back. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { Unavailable } from '../../../src/errors.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { allLanes } from '../../../src/redis/lanes.ts'
import { connectResp, type RespClient } from '../../../src/runtimes/node/redis/resp.ts'
import type { RespOptions } from '../../../src/runtimes/node/redis/socket/resp-client.ts'
import { principal } from '../../access/admission/callers.ts'
import {
  type ClusterNode,
  startRedisCluster,
  type TestCluster,
} from '../../harness/redis-cluster.ts'
import { hasRedisServer } from '../../harness/resp-server.ts'

const LANES = 12
const CALLERS = 200
/** A socket without replies is kept for so long: longer than a failover. */
const LONG_MS = 20_000

describe.skipIf(!hasRedisServer)('a master of a cluster', () => {
  let cluster: TestCluster
  const clients: RespClient[] = []
  beforeAll(async () => {
    cluster = await startRedisCluster()
  })
  afterAll(async () => {
    for (const client of clients) client.close()
    await cluster.close()
  })

  /** Connects another process, as far as Redis can see. */
  async function connected(options: Partial<RespOptions> = {}) {
    const client = connectResp({
      url: `${cluster.url}/?lanes=${LANES}`,
      ...options,
    })
    clients.push(client)
    // Refused for a fence without an end.
    if (options.fenceMs === undefined) await client.check()
    return client.connect({ timeoutMs: options.timeoutMs ?? 1_000 })
  }
  const placeOf = async ({ keys }: RedisConnection, through?: ClusterNode) =>
    cluster.ownerOf(
      Number(await cluster.replicas[0]?.direct.cluster('KEYSLOT', keys.prefix)),
      through,
    )
  /** Returns the lanes of a master, by their number. */
  async function lanesOf(master: ClusterNode, redis: RedisConnection): Promise<number[]> {
    const owners = await Promise.all(
      allLanes(redis).map((lane) => placeOf(lane, cluster.replicas[0])),
    )
    return owners.flatMap((owner, at) => (owner === master ? [at] : []))
  }
  function laneAt(redis: RedisConnection, at: number): RedisConnection {
    const lane = allLanes(redis)[at]
    if (lane === undefined) throw new Error('there is no such lane')
    return lane
  }

  test('that was paused and replaced admits no revoked caller, and would without the fence [S94]', async () => {
    const fenced = await connected()
    const believing = await connected({ fenceMs: Number.POSITIVE_INFINITY, timeoutMs: LONG_MS })
    const [master] = cluster.masters
    if (master === undefined) throw new Error('there is no master')
    const lanes = await lanesOf(master, fenced)
    const callers = Array.from({ length: CALLERS }, (_, index) => ({
      lane: lanes[index % lanes.length] ?? 0,
      principal: { ...principal(), tokenIdHash: `token-${index}` },
    }))
    /** Returns how many callers were admitted, revoked, and answered with 503. */
    async function judged(redis: RedisConnection) {
      const admissions = allLanes(redis).map((lane) =>
        createAdmission({ store: createRedisAdmissionStore(lane), now: Date.now }),
      )
      const outcomes = await Promise.all(
        callers.map(({ lane, principal }) =>
          Promise.resolve(admissions[lane]?.admit({ principal, address: '192.0.2.1', limits: [] }))
            .then((decision) => decision?.denial?.code ?? 'admitted')
            .catch((error) => (error instanceof Unavailable ? 'unavailable' : String(error))),
        ),
      )
      const count = (outcome: string) => outcomes.filter((each) => each === outcome).length
      return {
        admitted: count('admitted'),
        revoked: count('token_revoked'),
        unavailable: count('unavailable'),
      }
    }
    expect(await judged(fenced)).toMatchObject({ admitted: CALLERS })
    expect(await judged(believing)).toMatchObject({ admitted: CALLERS })

    master.pause()
    onTestFinished(() => master.resume())
    // The old master reads this socket first when it wakes up, because it was the first one with data.
    const waiting = laneAt(believing, lanes[0] ?? 0).send([['PING']])
    await cluster.settled(cluster.nodes.filter((node) => node !== master))
    // The new master has no replica yet.
    const revoking = await connected({ replicasAcked: 0 })
    for (const { lane, principal } of callers)
      await createRevocations(laneAt(revoking, lane), Date.now).revokeToken({
        tokenIdHash: principal.tokenIdHash,
        untilSeconds: Date.now() / 1_000 + 60,
      })
    // The calls are on their way when the old master wakes up.
    const results = Promise.all([judged(fenced), judged(believing)])
    await sleep(50)
    master.resume()
    expect(await waiting).toEqual([{ result: 'PONG' }])
    const [withFence, without] = await results
    expect(withFence.admitted).toBe(0)
    expect(withFence.revoked + withFence.unavailable).toBe(CALLERS)
    expect(without.admitted).toBeGreaterThan(0)
    await expect.poll(() => judged(fenced)).toMatchObject({ revoked: CALLERS })
    await cluster.settled()
  })

  test('that is killed under load stops its own lanes only, and they come back [R43]', async () => {
    // A pause of this process must not be taken for the silence of a master.
    const redis = await connected({ fenceMs: 1_500 })
    const [, , master] = cluster.masters
    if (master === undefined) throw new Error('there is no master')
    const own = new Set(await lanesOf(master, redis))
    const ofOthers: unknown[] = []
    let isBack = false
    let ofOwn = 0
    async function load(at: number): Promise<void> {
      const lane = laneAt(redis, at)
      const key = `${lane.keys.prefix}load`
      while (!isBack) {
        const result = await lane.send([['INCR', key]]).catch((error: unknown) => error)
        if (!own.has(at)) ofOthers.push(result)
        else if (result instanceof Error) ofOwn += 1
        await sleep(5)
      }
    }
    const loads = allLanes(redis).map((_, at) => load(at))
    await sleep(200)
    await master.kill()
    for (const at of own)
      await expect
        .poll(
          () =>
            laneAt(redis, at)
              .send([['PING']])
              .catch(() => undefined),
          { interval: 20 },
        )
        .toEqual([{ result: 'PONG' }])
    isBack = true
    await Promise.all(loads)
    expect(ofOthers.length).toBeGreaterThan(100)
    expect(ofOthers.filter((result) => result instanceof Error)).toEqual([])
    expect(ofOwn).toBeGreaterThan(0)
  })
})
