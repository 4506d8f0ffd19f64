/** Gateway processes that end by SIGKILL in the middle of their work on a real cluster. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLaneAdmissionStore } from '../../../src/access/admission/redis/lane-store.ts'
import { counterName } from '../../../src/access/admission/redis/limit-overrides.ts'
import { NOTHING_REVOCABLE } from '../../../src/access/revocation/revocation.ts'
import { replicationKeys } from '../../../src/redis/keys.ts'
import { laneOf } from '../../../src/redis/lanes.ts'
import { connectResp, type RespClient } from '../../../src/runtimes/node/redis/resp.ts'
import { principal, takenOf } from '../../access/admission/callers.ts'
import { NEVER } from '../../harness/never.ts'
import { ROOT } from '../../harness/process.ts'
import { startRedisCluster, type TestCluster } from '../../harness/redis-cluster.ts'
import { hasRedisServer } from '../../harness/resp-server.ts'
import { outcomesOf } from './outcomes.ts'
import { limitOfParty, SHARED_LIMIT, SUBJECT_LIMIT } from './parties.ts'

const LANES = 64
/** Lanes that have the revocation when its writer ends. */
const WRITTEN = 20
const CALLERS = 200
const COMPLETED_MS = 20_000

describe.skipIf(!hasRedisServer)('a gateway that is killed', () => {
  let cluster: TestCluster
  const clients: RespClient[] = []
  beforeAll(async () => {
    cluster = await startRedisCluster({ replicas: 0 })
  })
  afterAll(async () => {
    for (const client of clients) client.close()
    await cluster?.close()
  })
  const url = () => `${cluster.url}/?lanes=${LANES}`
  function gateway(completesFacts = false) {
    const client = connectResp({ url: url(), timeoutMs: 1_000, replicasAcked: 0, completesFacts })
    clients.push(client)
    return client.connect({ timeoutMs: 1_000 })
  }
  /** Runs a process until it kills itself. */
  async function dying(...args: string[]): Promise<void> {
    const program = join(import.meta.dirname, 'dying.ts')
    const child = spawn(join(ROOT, 'node_modules/.bin/node'), [program, url(), ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let output = ''
    child.stderr.on('data', (text) => {
      output += text
    })
    const [, signal] = await once(child, 'close')
    expect(signal, output).toBe('SIGKILL')
  }

  test('between a take and its refund leaves one unit that counts, and no limit admits more', async () => {
    const redis = gateway()
    const tenant = 'acme'
    const subject = Array.from({ length: 100 }, (_, n) => `subject-${n}`).find(
      (name) => laneOf(redis, name) !== laneOf(redis, tenant),
    )
    if (subject === undefined) throw new Error('all subjects have one lane')
    const own = limitOfParty(subject, SUBJECT_LIMIT)
    const shared = limitOfParty(tenant, SHARED_LIMIT)
    const store = createLaneAdmissionStore(redis)
    const admits = async (caller: string, limits: (typeof own)[]) => {
      const query = { revocation: NOTHING_REVOCABLE, bans: [], nowMs: Date.now() }
      const facts = await store.consult({ ...query, caller, limits })
      return facts.limits.every((state) => state && 'admitted' in state && state.admitted)
    }
    const takenIn = async ({ key, owner = '' }: typeof own) => {
      const { keys, send } = laneOf(redis, owner)
      const [reply] = await send([['GET', counterName(keys, key)]])
      return takenOf(String(reply?.result ?? '0'))
    }
    expect(await admits('other', [limitOfParty('other', SUBJECT_LIMIT), shared])).toBe(true)
    await dying('refund', subject, tenant)
    expect([await takenIn(own), await takenIn(shared)]).toEqual([1, SHARED_LIMIT])
    const later: boolean[] = []
    for (let n = 0; n < 2 * SUBJECT_LIMIT; n += 1) later.push(await admits(subject, [own]))
    // The unit that no request uses counts until its window ends.
    expect(later.filter(Boolean)).toHaveLength(SUBJECT_LIMIT - 1)
    expect(await takenIn(own)).toBe(SUBJECT_LIMIT)
  })

  test(`after ${WRITTEN} of ${LANES} lanes have a revocation has it completed by another gateway`, async () => {
    const redis = gateway()
    const members = () =>
      Array.from({ length: CALLERS }, (_, n) =>
        principal({ subject: `member-${n}`, tenant: 'revoked' }),
      )
    const outcomes = () => outcomesOf(redis, members(), Date.now)
    const pending = async () => {
      const [reply] = await redis.send([['ZCARD', replicationKeys(redis.keys).pendingFacts]])
      return reply?.result
    }
    expect(await outcomes()).toEqual({ admitted: CALLERS, refused: 0, unavailable: 0 })
    await dying('revoke', 'revoked', String(WRITTEN))
    const inPart = await outcomes()
    expect(inPart.refused, 'some lanes have it').toBeGreaterThan(0)
    expect(inPart.admitted, 'its writer got no answer').toBeGreaterThan(0)
    expect(await pending()).toBe(1)
    gateway(true)
      .send([['EXISTS', `${redis.keys.prefix}any`]])
      .catch(() => {})
    await expect.poll(pending, { timeout: COMPLETED_MS }).toBe(0)
    expect(await outcomes(), NEVER).toEqual({ admitted: 0, refused: CALLERS, unavailable: 0 })
  })
})
