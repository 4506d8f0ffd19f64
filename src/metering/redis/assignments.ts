/** Assignments of plans in Redis: the records that operators see, and the keys that `admit` reads. */
import type { RedisConnection } from '../../redis/connection.ts'
import { recordKeys } from '../../redis/keys.ts'
import { createOwners } from '../../redis/owners.ts'
import { assignmentSchema, type PlanAssignments } from '../assignment.ts'

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
  })
