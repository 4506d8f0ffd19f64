/** A gateway process that is killed at one point of its work: `node dying.ts URL refund|revoke NAME…`. */

import { setTimeout as sleep } from 'node:timers/promises'
import { createLaneAdmissionStore } from '../../../src/access/admission/redis/lane-store.ts'
import { withBroadcast } from '../../../src/access/revocation/redis/broadcast.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { NOTHING_REVOCABLE } from '../../../src/access/revocation/revocation.ts'
import type { Lanes, RedisConnection } from '../../../src/redis/connection.ts'
import { connectResp } from '../../../src/runtimes/node/redis/resp.ts'
import { IDP } from '../../access/admission/callers.ts'
import { limitOfParty, SHARED_LIMIT, SUBJECT_LIMIT } from './parties.ts'

const [url = '', point, first = '', second = ''] = process.argv.slice(2)
const client = connectResp({ url, timeoutMs: 1_000, replicasAcked: 0 })
const redis = client.connect({ timeoutMs: 1_000 })
const { lanes } = redis
if (lanes === undefined) throw new Error('this is no cluster')

const die = (): Promise<never> => {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
}

/** Returns the lanes with another `send`. */
function through(send: (lane: RedisConnection) => RedisConnection['send']): Lanes {
  const all = lanes?.all.map((lane) => ({ ...lane, send: send(lane) })) ?? []
  return {
    ...lanes,
    all,
    of: (value) => all[lanes?.all.indexOf(lanes.of(value)) ?? 0] ?? redis,
  } as Lanes
}

if (point === 'refund') {
  // The subject's leg takes a unit, the party's leg refuses, and the process ends before it gives the unit back.
  const dying = through(
    (lane) => (commands, options) =>
      options?.over?.socket === undefined ? lane.send(commands, options) : die(),
  )
  await createLaneAdmissionStore({ ...redis, lanes: dying }).consult({
    ...{ caller: first, revocation: NOTHING_REVOCABLE, bans: [], nowMs: Date.now() },
    limits: [limitOfParty(first, SUBJECT_LIMIT), limitOfParty(second, SHARED_LIMIT)],
  })
} else {
  // So many lanes have the fact when the process ends.
  const most = Number(second)
  const begun = new Set<RedisConnection>()
  const written = new Set<RedisConnection>()
  const dying = through((lane) => async (commands, options) => {
    if (begun.size < most) begun.add(lane)
    if (!begun.has(lane)) return new Promise(() => {})
    const replies = await lane.send(commands, options)
    // The script is sent again if the server did not have it.
    if (replies.every(({ error }) => error === undefined)) written.add(lane)
    return written.size === most ? die() : replies
  })
  const revocations = createRevocations(withBroadcast({ ...redis, lanes: dying }), Date.now)
  await revocations.revokeBefore({
    ...{ kind: 'tenant', issuer: IDP, value: first, ttlSeconds: 600 },
    atSeconds: Date.now() / 1_000,
  })
}
// The refund is sent behind the decision.
await sleep(10_000)
throw new Error('the process was not killed')
