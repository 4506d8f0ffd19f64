/** Assignments of plans in Redis: the records that operators see, and the keys that `admit` reads. */

import { planRecordOf } from '../../../access/admission/plan-record.ts'
import { writeFacts } from '../../../access/revocation/redis/facts.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { recordKeys } from '../../../redis/keys.ts'
import { createOwners } from '../../../redis/owners.ts'
import { readList, readText, sendCommand } from '../../../redis/reply.ts'
import { assignmentSchema, type PlanAssignments, type PlansOfKeys } from '../assignment.ts'

/** Returns the plans of API keys, in the order of their ids. Null: the key has no plan of its own. */
export const createKeyPlanReader = (redis: RedisConnection, publicUrl: string): PlansOfKeys =>
  async function plansOf(ids) {
    if (ids.length === 0) return []
    const ends = await Promise.all(ids.map((id) => planRecordOf('key', publicUrl, id)))
    const reply = await sendCommand(redis, ['MGET', ...ends.map((end) => redis.keys.plan + end)])
    return readList(reply, ids.length).map((plan) => (plan === null ? null : readText(plan)))
  }

/** Creates the list. `now` is in milliseconds since the epoch. */
export const createPlanAssignments = (redis: RedisConnection, now: () => number): PlanAssignments =>
  createOwners({
    redis,
    records: recordKeys(redis.keys).planRecords,
    owner: recordKeys(redis.keys).planOwner,
    schema: assignmentSchema,
    now,
    keyOf: (end) => redis.keys.plan + end,
    settingOf: ({ plan }) => plan,
    // A limit of any party may use the plan.
    write: (facts, run) => writeFacts(redis, facts, now, run),
  })
