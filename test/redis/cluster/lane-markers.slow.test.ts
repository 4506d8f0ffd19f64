/** Masters of a real cluster that are empty, as after a restart without persistence. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, type MockInstance, test, vi } from 'vitest'
import type { Principal } from '../../../src/access/principal.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { Unavailable } from '../../../src/errors.ts'
import { laneTags, tagSlot } from '../../../src/redis/lanes.ts'
import { connectResp, type RespClient } from '../../../src/runtimes/node/redis/resp.ts'
import { IDP, principal } from '../../access/admission/callers.ts'
import { NEVER } from '../../harness/never.ts'
import {
  type ClusterNode,
  startRedisCluster,
  type TestCluster,
} from '../../harness/redis-cluster.ts'
import { hasRedisServer } from '../../harness/resp-server.ts'
import { outcomesOf } from './outcomes.ts'

const LANES = 16
const CALLERS = 100
/** With the fence, shorter than the node timeout. */
const TIMEOUT_MS = 1_000
/** A proof takes a quarter of a second; a busy machine needs more. */
const RESTORED_MS = 15_000
/** Much shorter than the node timeout: no replica takes over. */
const RESTART_MS = 300

const now = () => Date.now()

async function lose({ direct }: ClusterNode): Promise<void> {
  await direct.flushall()
  await direct.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
}

describe.skipIf(!hasRedisServer)('a master that has lost its keys', () => {
  let cluster: TestCluster
  const clients: RespClient[] = []
  let warnings: MockInstance<typeof console.error>
  beforeAll(async () => {
    warnings = vi.spyOn(console, 'error').mockImplementation(() => {})
    cluster = await startRedisCluster()
  })
  afterAll(async () => {
    warnings.mockRestore()
    for (const client of clients) client.close()
    await cluster?.close()
  })

  function gateway() {
    const client = connectResp({ url: `${cluster.url}/?lanes=${LANES}`, timeoutMs: TIMEOUT_MS })
    clients.push(client)
    const redis = client.connect({ timeoutMs: TIMEOUT_MS })
    const outcomes = (asked: readonly Principal[]) => outcomesOf(redis, asked, now)
    return { client, redis, outcomes }
  }

  test.each([
    ['lost the socket', lose],
    [
      'restarted',
      async (node: ClusterNode) => {
        await node.kill()
        await sleep(RESTART_MS)
        await node.restart()
      },
    ],
  ])(
    'that %s admits no revoked caller, and gets all revocations again [S94]',
    async (_, loseKeys) => {
      await cluster.settled()
      const { redis, outcomes } = gateway()
      const revocations = createRevocations(redis, now)
      const times = () => ({ atSeconds: now() / 1000, ttlSeconds: 600 })
      const subjects = Array.from({ length: CALLERS }, () => principal({ tenant: 'other' }))
      const members = Array.from({ length: CALLERS }, () => principal({ tenant: 'acme' }))
      await expect.poll(() => outcomes(subjects)).toMatchObject({ admitted: CALLERS })
      for (const { subject: value } of subjects)
        await revocations.revokeBefore({ kind: 'subject', issuer: IDP, value, ...times() })
      await revocations.revokeBefore({ kind: 'tenant', issuer: IDP, value: 'acme', ...times() })
      const revoked = [...subjects, ...members]
      expect(await outcomes(revoked)).toMatchObject({ refused: 2 * CALLERS })

      const control = await cluster.ownerOf(tagSlot('c'))
      const lost = cluster.masters.find((node) => node !== control)
      if (lost === undefined) throw new Error('there is no other master')
      await loseKeys(lost)
      const other = gateway()
      let admitted = 0
      for (const { outcomes: outcomesAt } of [{ outcomes }, other])
        await expect
          .poll(
            async () => {
              // New callers, because the isolate knows those that it has refused.
              const count = await outcomesAt(revoked.map((caller) => ({ ...caller })))
              admitted += count.admitted
              return count.refused
            },
            { timeout: RESTORED_MS },
          )
          .toBe(2 * CALLERS)
      expect(admitted, NEVER).toBe(0)
      expect(warnings.mock.calls.flat().join()).toContain('gets their revocations again')
    },
  )

  test('and slots without their keys, which a believed master gains, admit no revoked caller', async () => {
    await cluster.settled()
    const { redis, outcomes } = gateway()
    const revocations = createRevocations(redis, now)
    const subjects = Array.from({ length: CALLERS }, () => principal({ tenant: 'other' }))
    await expect.poll(() => outcomes(subjects)).toMatchObject({ admitted: CALLERS })
    const times = { atSeconds: now() / 1000, ttlSeconds: 600 }
    for (const { subject: value } of subjects)
      await revocations.revokeBefore({ kind: 'subject', issuer: IDP, value, ...times })
    expect(await outcomes(subjects)).toMatchObject({ refused: CALLERS })

    const control = await cluster.ownerOf(tagSlot('c'))
    const lanes = await Promise.all(
      laneTags(LANES).map(async (tag) => ({
        slot: tagSlot(tag),
        owner: await cluster.ownerOf(tagSlot(tag)),
      })),
    )
    const lost = lanes.find(({ owner }) => owner !== control)?.owner
    const gains = cluster.masters.find((node) => node !== control && node !== lost)
    if (lost === undefined || gains === undefined) throw new Error('there are no other masters')
    // As `redis-cli --cluster fix` does for slots whose master and replica are gone.
    await lost.direct.flushall()
    for (const { slot } of lanes.filter(({ owner }) => owner === lost))
      for (const node of [gains, lost, ...cluster.masters.filter((each) => each === control)])
        await node.direct.call('CLUSTER', 'SETSLOT', slot, 'NODE', gains.id)
    let admitted = 0
    await expect
      .poll(
        async () => {
          const count = await outcomes(subjects.map((caller) => ({ ...caller })))
          admitted += count.admitted
          return count.refused
        },
        { timeout: RESTORED_MS },
      )
      .toBe(CALLERS)
    expect(admitted, NEVER).toBe(0)
  })

  test('is refused if it has the control lane, until an operator continues without it', async () => {
    const running = gateway()
    const { redis } = running
    const control = await cluster.ownerOf(tagSlot('c'))
    const ping = [['EXISTS', `${redis.keys.prefix}any`]]
    await expect.poll(() => redis.send(ping).catch(() => undefined)).toEqual([{ result: 0 }])
    if (control === undefined) throw new Error('there is no control lane')
    await lose(control)
    for (const each of [redis, gateway().redis])
      for (let n = 0; n < 3; n += 1) await expect(each.send(ping)).rejects.toThrow(Unavailable)
    expect(warnings.mock.calls.flat().join()).toContain('SET pc:{c}:lanes 16')
    await control.direct.set('pc:{c}:lanes', LANES)
    // No gateway restarts: what one revokes now is not lost with another master.
    const subjects = Array.from({ length: CALLERS }, () => principal({ tenant: 'other' }))
    await expect
      .poll(() => running.outcomes(subjects), { timeout: RESTORED_MS })
      .toMatchObject({ admitted: CALLERS })
    const revocations = createRevocations(running.redis, now)
    const times = { atSeconds: now() / 1000, ttlSeconds: 600 }
    for (const { subject: value } of subjects)
      await revocations.revokeBefore({ kind: 'subject', issuer: IDP, value, ...times })
    const next = cluster.masters.find((node) => node !== control)
    if (next === undefined) throw new Error('there is no other master')
    await lose(next)
    let admitted = 0
    await expect
      .poll(
        async () => {
          const count = await running.outcomes(subjects.map((caller) => ({ ...caller })))
          admitted += count.admitted
          return count.refused
        },
        { timeout: RESTORED_MS },
      )
      .toBe(CALLERS)
    expect(admitted, NEVER).toBe(0)
    const later = gateway()
    await expect
      .poll(() => later.redis.send(ping).catch(() => undefined), { timeout: RESTORED_MS })
      .toEqual([{ result: 0 }])
    expect(await control.direct.get('pc:{c}:marker')).toBe('1')
  })
})
