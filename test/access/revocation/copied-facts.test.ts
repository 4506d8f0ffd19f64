/** Facts that are copied to the lanes of a cluster, as one server shows them. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { withBroadcast } from '../../../src/access/revocation/redis/broadcast.ts'
import { createRevocationLog } from '../../../src/access/revocation/redis/revocation-log.ts'
import { laneOf } from '../../../src/redis/lanes.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { overResp } from '../../harness/redis-protocols.ts'
import { IDP } from '../admission/callers.ts'
import { lanesOver } from '../admission/redis/lanes.ts'

const SUBJECT = 'anne'
let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
beforeEach(async () => {
  await redis.direct.flushall()
})
afterAll(() => redis.close())

/** Creates 64 lanes. Calls to a lane for whose prefix `fails` returns true fail. */
function cluster() {
  const state = { fails: (_prefix: string) => false }
  const lanes = withBroadcast(
    lanesOver(overResp(redis), 64, ({ keys }, pass) =>
      state.fails(keys.prefix) ? Promise.resolve([{ error: 'ERR broken' }]) : pass(),
    ),
  )
  const { prefix } = laneOf(lanes, SUBJECT).keys
  return { lanes, state, prefix, log: createRevocationLog(lanes, Date.now) }
}

test('a lift that a lane does not have is repeated until it does', async () => {
  const { lanes, state, prefix, log } = cluster()
  const { id } = await log.create({
    kind: 'subject',
    value: SUBJECT,
    issuer: IDP,
    issuers: [IDP],
    ttlSeconds: 86_400,
    createdBy: 'olga',
  })
  const cutoffs = () => redis.direct.keys(`${prefix}cutoff:*`)
  expect(await cutoffs()).toHaveLength(1)
  state.fails = (lane) => lane === prefix
  await expect(log.remove(id)).rejects.toThrow()
  await expect(log.remove(id)).rejects.toThrow()
  // Until then it is listed, for an hour at most.
  expect((await log.list({ limit: 10 })).items).toMatchObject([{ id }])
  const [name = ''] = await redis.direct.keys(`${lanes.keys.prefix}*${id}`)
  expect(await redis.direct.ttl(name)).toBeLessThanOrEqual(3_600)
  state.fails = () => false
  expect(await log.remove(id)).toBe(true)
  expect(await cutoffs()).toEqual([])
  expect(await log.find(id)).toBeUndefined()
  expect((await log.list({ limit: 10 })).items).toEqual([])
  expect(await log.remove(id)).toBe(false)
})

/** Versions are microseconds since the epoch. */
const VERSION = 1_700_000_000_000_000

test('a text in its last half second does not keep other facts from their lane', async () => {
  const { lanes, prefix } = cluster()
  const { keys } = lanes
  const number = lanes.lanes.all.findIndex((lane) => lane.keys.prefix === prefix)
  await redis.direct.set(`${keys.prefix}plan:subject:x:anne`, 'gold', 'PX', 450)
  await redis.direct.set(`${keys.prefix}cutoff:subject:x:anne`, '1900000000', 'EX', 600)
  const marks = ['plan', 'cutoff'].map(
    (kind, at) => `${VERSION + at} ${number} ${kind}:subject:x:anne`,
  )
  for (const mark of marks) await redis.direct.zadd(`${keys.prefix}pending-facts`, 1, mark)
  expect(await lanes.broadcast.complete(Date.now)).toBe(2)
  expect(await redis.direct.get(`${prefix}cutoff:subject:x:anne`)).toBe('1900000000')
})
