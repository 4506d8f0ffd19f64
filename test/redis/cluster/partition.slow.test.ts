/** Partitions of the network of a real cluster, by proxies before each node, and refunds around a failover. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLaneAdmissionStore } from '../../../src/access/admission/redis/lane-store.ts'
import { counterName } from '../../../src/access/admission/redis/limit-overrides.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { NOTHING_REVOCABLE } from '../../../src/access/revocation/revocation.ts'
import type { Lanes, RedisConnection } from '../../../src/redis/connection.ts'
import { laneOf, tagSlot } from '../../../src/redis/lanes.ts'
import { connectResp, type RespClient } from '../../../src/runtimes/node/redis/resp.ts'
import { IDP, principal, takenOf } from '../../access/admission/callers.ts'
import { NEVER } from '../../harness/never.ts'
import {
  type ClusterNode,
  partition,
  startRedisCluster,
  type TestCluster,
} from '../../harness/redis-cluster.ts'
import { hasRedisServer } from '../../harness/resp-server.ts'
import { outcomesOf } from './outcomes.ts'
import { limitOfParty } from './parties.ts'

const LANES = 12
const CALLERS = 40
const TIMEOUT_MS = 500
const PATIENCE = { timeout: 40_000, interval: 50 }
/** Gateways on both sides of a partition. A gate knows them by their users. */
const USERS = ['island', 'mainland'] as const
type Side = (typeof USERS)[number]

describe.skipIf(!hasRedisServer)('faults of the network', () => {
  let cluster: TestCluster
  const clients: RespClient[] = []
  let island: ReturnType<RespClient['connect']>
  let mainland: ReturnType<RespClient['connect']>

  beforeAll(async () => {
    cluster = await startRedisCluster({ gates: {} })
    for (const { direct } of cluster.nodes)
      for (const user of USERS)
        await direct.call('ACL', 'SETUSER', user, 'on', 'nopass', '~*', '&*', '+@all')
    ;[island, mainland] = (await Promise.all(USERS.map(gateway))) as [typeof island, typeof island]
  })
  afterAll(async () => {
    for (const client of clients) client.close()
    await cluster?.close()
  })

  async function gateway(user: Side) {
    const url = `${cluster.url.replace('//', `//${user}:any@`)}/?lanes=${LANES}`
    const client = connectResp({ url, timeoutMs: TIMEOUT_MS, replicasAcked: 0 })
    clients.push(client)
    expect(await client.check()).toEqual([])
    return client.connect({ timeoutMs: TIMEOUT_MS })
  }

  /** Lets one gateway reach no node of `nodes`. */
  function cut(user: Side, nodes: readonly ClusterNode[]): void {
    for (const node of nodes) node.gates?.clients.set((from) => (from === user ? 'hang' : 'serve'))
  }
  function heal(): void {
    for (const node of cluster.nodes) node.gates?.clients.set(() => 'serve')
  }

  const slotOf = ({ keys }: RedisConnection) => tagSlot(/\{(\w+)\}/.exec(keys.prefix)?.[1] ?? '')
  const masterOf = (subject: string) => cluster.ownerOf(slotOf(laneOf(island, subject)))

  /** Returns callers of a tenant whose lanes are on a master, or on the others. */
  async function callersOf(master: ClusterNode, tenant: string, isOnIt = true) {
    const callers = []
    for (let n = 0; callers.length < CALLERS; n += 1) {
      const subject = `${tenant}-${n}`
      if (((await masterOf(subject)) === master) === isOnIt)
        callers.push(principal({ subject, tenant, tokenIdHash: subject }))
    }
    return callers
  }

  const revoke = (tenant: string) =>
    createRevocations(mainland, Date.now).revokeBefore({
      ...{ kind: 'tenant', issuer: IDP, value: tenant, ttlSeconds: 600 },
      atSeconds: Date.now() / 1_000 + 5,
    })
  /** The control lane is not on the first master of the cluster. */
  async function ordinaryMaster(): Promise<ClusterNode> {
    const control = await cluster.ownerOf(slotOf(island))
    for (const node of cluster.masters)
      if (node !== control && (await cluster.ownerOf(slotOf(laneOf(island, 'a')))) !== undefined)
        return node
    throw new Error('there is no other master')
  }

  test('a partition between one gateway and a master gives 503 in its lanes only, and afterwards no revoked caller is admitted [R43]', async () => {
    const master = await ordinaryMaster()
    const [own, others] = [await callersOf(master, 'one'), await callersOf(master, 'other', false)]
    const all = { admitted: CALLERS, refused: 0, unavailable: 0 }
    for (const callers of [own, others])
      expect(await outcomesOf(island, callers, Date.now)).toEqual(all)
    cut('island', [master])
    expect(await outcomesOf(island, own, Date.now)).toEqual({
      ...all,
      admitted: 0,
      unavailable: CALLERS,
    })
    expect(await outcomesOf(island, others, Date.now)).toEqual(all)
    // The other gateway still reaches the master, which stays one.
    expect(await outcomesOf(mainland, own, Date.now)).toEqual(all)
    await revoke('one')
    heal()
    const seen = { admitted: 0, refused: 0, unavailable: 0 }
    await expect
      .poll(async () => {
        const { admitted, refused, unavailable } = await outcomesOf(island, own, Date.now)
        seen.admitted += admitted
        seen.unavailable += unavailable
        return refused
      }, PATIENCE)
      .toBe(CALLERS)
    expect(seen.admitted, NEVER).toBe(0)
    expect(await cluster.ownerOf(slotOf(laneOf(island, own[0]?.subject ?? '')))).toBe(master)
  })

  test('a partition that leaves a gateway with one master admits no caller once a revocation is answered [S94]', async () => {
    const master = await ordinaryMaster()
    const others = cluster.nodes.filter((node) => node !== master)
    const callers = await callersOf(master, 'minority')
    expect((await outcomesOf(island, callers, Date.now)).admitted).toBe(CALLERS)

    const mend = partition(cluster, [master])
    cut('island', others)
    cut('mainland', [master])
    let answeredMs = Number.POSITIVE_INFINITY
    const counts = { before: 0, after: 0, refusedOrUnavailable: 0 }
    let isOver = false
    async function ask(): Promise<void> {
      while (!isOver) {
        const sentMs = performance.now()
        const { admitted, refused, unavailable } = await outcomesOf(island, callers, Date.now)
        if (sentMs >= answeredMs) counts.after += admitted
        else counts.before += admitted
        counts.refusedOrUnavailable += refused + unavailable
        await sleep(5)
      }
    }
    const asking = ask()
    // Not answered before the replica has taken over: the master of these lanes is away.
    await expect
      .poll(
        () =>
          revoke('minority').then(
            () => true,
            () => false,
          ),
        PATIENCE,
      )
      .toBe(true)
    answeredMs = performance.now()
    expect(
      await cluster.ownerOf(slotOf(laneOf(mainland, callers[0]?.subject ?? '')), others[0]),
    ).not.toBe(master)
    await sleep(500)
    mend()
    heal()
    await cluster.settled()
    await expect
      .poll(async () => (await outcomesOf(island, callers, Date.now)).refused, PATIENCE)
      .toBe(CALLERS)
    isOver = true
    await asking
    expect(counts.before, 'the minority was believed for a moment').toBeGreaterThan(0)
    expect(counts.after, NEVER).toBe(0)
    expect((await outcomesOf(mainland, callers, Date.now)).refused).toBe(CALLERS)
  })

  test('a failover between a take and its refund leaves the unit, and frees none of another request', async () => {
    const LIMIT = 4
    const control = await cluster.ownerOf(slotOf(mainland))
    const names = Array.from({ length: 200 }, (_, n) => `party-${n}`)
    const places = await Promise.all(names.map(masterOf))
    const tenant = names.find((_, at) => places[at] !== control) ?? ''
    const master = places[names.indexOf(tenant)]
    const subject = names.find((_, at) => places[at] !== master) ?? ''
    if (master === undefined) throw new Error('there is no master')
    const shared = limitOfParty(tenant, LIMIT)
    const spent = limitOfParty(subject, 1)

    /** Returns the lanes with a pause before the refund. */
    function pausingBefore(refund: () => Promise<void>) {
      let paused: Promise<void> | undefined
      const { lanes } = mainland
      if (lanes === undefined) throw new Error('this is no cluster')
      const all = lanes.all.map((lane) => ({
        ...lane,
        send: async (...[commands, options]: Parameters<typeof lane.send>) => {
          if (options?.over?.socket !== undefined) {
            paused ??= refund()
            await paused
          }
          return lane.send(commands, options)
        },
      }))
      const of = (value: string) => all[lanes.all.indexOf(lanes.of(value))] ?? mainland
      return { ...mainland, lanes: { ...lanes, all, of } as Lanes }
    }
    const query = { caller: subject, revocation: NOTHING_REVOCABLE, bans: [] }
    const store = createLaneAdmissionStore(mainland)
    const admits = async (limits: (typeof shared)[]) => {
      const { limits: states } = await store.consult({ ...query, limits, nowMs: Date.now() })
      return states.every((state) => state !== undefined && 'admitted' in state && state.admitted)
    }
    const taken = async () => {
      const { keys, send } = laneOf(mainland, tenant)
      const [reply] = await send([['GET', counterName(keys, shared.key)]])
      return takenOf(String(reply?.result ?? '0'))
    }
    expect(await admits([spent])).toBe(true)
    // Other requests use two units, which the replica has.
    for (let n = 0; n < 2; n += 1) expect(await admits([shared])).toBe(true)

    const refunds: Promise<boolean>[] = []
    const dying = createLaneAdmissionStore(
      pausingBefore(async () => {
        // The replica has all writes before this one too.
        const { keys, send } = laneOf(mainland, tenant)
        await send([['SET', `${keys.prefix}last`, 1, 'EX', 60]], { acknowledgedBy: 1 })
        await master.kill()
        await cluster.settled(cluster.nodes.filter((node) => node !== master))
        // A refund that is sent to the new master would free a unit of these requests.
        await expect.poll(taken, PATIENCE).toBe(3)
      }),
      undefined,
      (done) => refunds.push(done),
    )
    const refused = await dying.consult({ ...query, limits: [spent, shared], nowMs: Date.now() })
    expect(refused.limits[0]).toMatchObject({ admitted: false })
    expect(refunds).toHaveLength(1)
    expect(await Promise.all(refunds), 'nothing was given back').toEqual([false])
    expect(await taken()).toBe(3)
    const later: boolean[] = []
    for (let n = 0; n < 2 * LIMIT; n += 1) later.push(await admits([shared]))
    expect(later.filter(Boolean)).toHaveLength(LIMIT - 3)
  })
})
