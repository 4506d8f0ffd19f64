/** Revocations on a real cluster whose masters are paused and killed. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Principal } from '../../../src/access/principal.ts'
import { createRevocationLog } from '../../../src/access/revocation/redis/revocation-log.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { Unavailable } from '../../../src/errors.ts'
import { laneTags, tagSlot } from '../../../src/redis/lanes.ts'
import { connectResp, type RespClient } from '../../../src/runtimes/node/redis/resp.ts'
import { IDP, principal } from '../../access/admission/callers.ts'
import { NEVER } from '../../harness/never.ts'
import { startRedisCluster, type TestCluster } from '../../harness/redis-cluster.ts'
import { hasRedisServer } from '../../harness/resp-server.ts'
import { outcomesOf } from './outcomes.ts'

const LANES = 64
const CALLERS = 200
const TIMEOUT_MS = 500
/** More than the buffers between a master and its replica. */
const LAG_BYTES = 24_000_000
/** The node timeout, an election, and what a busy machine needs. */
const FAILOVER_MS = 30_000

const now = () => Date.now()
const callers = (tenant: string) =>
  Array.from({ length: CALLERS }, () => principal({ subject: crypto.randomUUID(), tenant }))

describe.skipIf(!hasRedisServer)('on a cluster', () => {
  let cluster: TestCluster
  const clients: RespClient[] = []
  beforeAll(async () => {
    // However long a busy machine takes, the replica that lagged takes over.
    cluster = await startRedisCluster({ args: ['--cluster-replica-validity-factor', '0'] })
  })
  afterAll(async () => {
    for (const client of clients) client.close()
    await cluster?.close()
  })

  /** Returns the connection of a further gateway. */
  function gateway(replicasAcked: number) {
    const url = `${cluster.url}/?lanes=${LANES}`
    const client = connectResp({ url, timeoutMs: TIMEOUT_MS, replicasAcked })
    clients.push(client)
    return client.connect({ timeoutMs: TIMEOUT_MS })
  }

  /** Returns how many callers were admitted, refused and not decided. */
  const outcomes = (asked: readonly Principal[], redis = gateway(0)) =>
    outcomesOf(redis, asked, now)

  /** Resolves when no call fails any more. */
  async function recovered(redis: ReturnType<typeof gateway>): Promise<void> {
    const probes = callers('probe')
    await expect
      .poll(async () => (await outcomes(probes, redis)).unavailable, { timeout: FAILOVER_MS })
      .toBe(0)
  }

  test('a tenant that is revoked while a master is paused is in force nowhere in part for longer than its completion [S92]', async () => {
    const redis = gateway(1)
    const members = callers('acme')
    await recovered(redis)
    expect((await outcomes(members, redis)).admitted).toBeGreaterThan(0)
    const [paused] = cluster.masters
    paused?.pause()
    onTestFinished(() => paused?.resume())
    const order = { kind: 'tenant', value: 'acme', ttlSeconds: 600 } as const
    const by = { issuer: IDP, issuers: [IDP], createdBy: 'olga' }
    const error = await createRevocationLog(redis, now)
      .create({ ...order, ...by })
      .catch((cause: unknown) => cause)
    expect(error).toBeInstanceOf(Unavailable)
    expect((error as Unavailable).problem.detail).toMatch(/in force in \d+ of 64 lanes/)
    const during = await outcomes(members, redis)
    expect(during.admitted, NEVER).toBe(0)
    expect(during.refused).toBeGreaterThan(0)
    // The background work of another gateway, as each gateway does it every 2 s.
    const other = gateway(0)
    await expect
      .poll(
        async () => {
          await other.broadcast?.complete(now).catch(() => 0)
          const { pendingFacts } = { pendingFacts: `${other.keys.prefix}pending-facts` }
          return (await other.send([['ZCARD', pendingFacts]]).catch(() => []))[0]?.result
        },
        { timeout: FAILOVER_MS, interval: 250 },
      )
      .toBe(0)
    await recovered(other)
    expect((await outcomes(members, other)).admitted, NEVER).toBe(0)
    paused?.resume()
    await cluster.settled()
    const after = await outcomes(members, redis)
    expect(after.admitted, NEVER).toBe(0)
  })

  test('no acknowledged revocation is lost with a master whose replica lagged; without WAIT some are [S92]', async () => {
    const [acked, unsafe] = [gateway(1), gateway(0)]
    await cluster.settled()
    await recovered(unsafe)
    const tags = laneTags(LANES)
    const slot = tagSlot(tags[0] ?? '')
    const master = await cluster.ownerOf(slot)
    const control = await cluster.ownerOf(tagSlot('c'))
    expect(master).not.toBe(control)
    // As the master says itself: the view of the cluster may be older.
    const ports: (string | undefined)[] = []
    await expect
      .poll(async () => {
        const info = String(await master?.direct.info('replication'))
        const online = /^slave\d+:ip=[^,]+,port=(\d+),state=online/gm
        ports.splice(0, ports.length, ...[...info.matchAll(online)].map(([, port]) => port))
        return ports.length
      })
      .toBe(1)
    const replica = cluster.nodes.find(({ port }) => String(port) === ports[0])
    if (replica === undefined) throw new Error('the master has no replica')
    replica.pause()
    onTestFinished(() => replica.resume())
    const chunk = 'x'.repeat(1_000_000)
    for (let n = 0; n < LAG_BYTES / chunk.length; n += 1)
      await master?.direct.set(`{${tags[0]}}:lag:${n % 4}`, chunk)

    async function revoke(redis: typeof acked, of: readonly Principal[]): Promise<Principal[]> {
      const revocations = createRevocations(redis, now)
      const done = await Promise.all(
        of.map(async (caller) => {
          const cutoff = { kind: 'subject', issuer: IDP, value: caller.subject } as const
          try {
            await revocations.revokeBefore({ ...cutoff, atSeconds: now() / 1000, ttlSeconds: 600 })
            return [caller]
          } catch (error) {
            if (!(error instanceof Unavailable)) throw error
            return []
          }
        }),
      )
      return done.flat()
    }
    const safe = await revoke(acked, callers('acked'))
    // A stall of the machine may close a fence, or let all deadlines pass, for a moment.
    const lost: Principal[] = []
    for (let n = 0; n < 10 && lost.length <= CALLERS / 2; n++)
      lost.push(...(await revoke(unsafe, callers('unsafe'))))
    expect(safe.length).toBeGreaterThan(0)
    expect(safe.length, 'the lanes of the master refuse').toBeLessThan(CALLERS)
    expect(lost.length).toBeGreaterThan(CALLERS / 2)

    await master?.kill()
    replica.resume()
    await cluster.settled(cluster.nodes.filter((node) => node !== master))
    await recovered(unsafe)
    expect((await outcomes(safe, unsafe)).admitted, NEVER).toBe(0)
    expect((await outcomes(lost, unsafe)).admitted, 'this test detects a loss').toBeGreaterThan(0)
  })
})
