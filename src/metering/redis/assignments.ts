/** Assignments of plans in Redis: the records that operators see, and the keys that `admit` reads. */
import { v7 } from 'uuid'
import {
  CREATE_OVERRIDE_SCRIPT,
  REMOVE_OVERRIDE_SCRIPT,
} from '../../admission/redis/scripts.generated.ts'
import type { RedisConnection } from '../../redis/connection.ts'
import { createRecordList, NEVER_ENDS } from '../../redis/record-list.ts'
import { malformed } from '../../redis/reply.ts'
import { assignmentSchema, type PlanAssignment, type PlanAssignments } from '../assignment.ts'

/**
 * Creates the list. `now` is in milliseconds since the epoch. The scripts of overrides keep keys and
 * their owners in step with the records; the value of a key is the name of the plan here.
 */
export function createPlanAssignments(redis: RedisConnection, now: () => number): PlanAssignments {
  const { keys: names } = redis
  const list = createRecordList({ redis, ...names.planRecords, schema: assignmentSchema, now })

  const keysOf = ({ id, windows }: PlanAssignment): string[] => [
    ...list.keysOf(id),
    ...windows.flatMap((end) => [names.plan + end, names.planOwner + end]),
  ]

  return {
    find: list.find,
    list: list.list,

    async create({ by, value, issuer, plan, windows, expiresInSeconds, createdBy }) {
      const createdAtSeconds = Math.floor(now() / 1000)
      const record: PlanAssignment = {
        id: v7(),
        by,
        value,
        issuer: issuer ?? null,
        plan,
        windows: [...windows],
        createdAtSeconds,
        createdBy,
        expiresAtSeconds:
          expiresInSeconds === undefined ? null : createdAtSeconds + expiresInSeconds,
      }
      const end = record.expiresAtSeconds ?? NEVER_ENDS
      const prefixes = [names.planRecords.prefix, names.planOwner]
      const values = [record.id, JSON.stringify(record), plan, expiresInSeconds ?? 0, end]
      const done = await list.run(CREATE_OVERRIDE_SCRIPT, keysOf(record), [...values, ...prefixes])
      if (done !== 1) throw malformed()
      return record
    },

    async remove(id) {
      const record = await list.find(id)
      if (record === undefined) return false
      return (await list.run(REMOVE_OVERRIDE_SCRIPT, keysOf(record), [id])) === 1
    },
  }
}
