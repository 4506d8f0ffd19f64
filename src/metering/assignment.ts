/** Assignments: the plans that operators give to API keys, subjects, clients and tenants. */

import * as z from 'zod/mini'
import { issuerName, name } from '../validators/names.ts'
import type { Records } from '../validators/page.ts'
import { integer, wholeNumber } from '../validators/schema-parts.ts'
import { PLAN_PARTIES } from './plan-record.ts'

/** One year. */
const MAX_ASSIGNMENT_SECONDS = 31_536_000

/** The body of `POST /-/admin/plans/assignments`. */
export const newAssignmentSchema = z.strictObject({
  by: z.enum(PLAN_PARTIES),
  /** The id of the API key, the subject, client or tenant. */
  value: name(512),
  /** One of the trusted issuers; absent: all of them. */
  issuer: z.optional(issuerName),
  plan: name(64),
  /** Absent: in force until it is removed. */
  expiresInSeconds: z.optional(wholeNumber(1, MAX_ASSIGNMENT_SECONDS)),
})

/** The stored record of an assignment. Times are seconds since the epoch. */
export const assignmentSchema = z.strictObject({
  /** UUIDv7. */
  id: z.uuid(),
  by: z.enum(PLAN_PARTIES),
  value: z.string(),
  /** From the request. Null: all issuers that were trusted at that time. */
  issuer: z.nullable(z.string()),
  plan: z.string(),
  /** Ends of the keys that name the plan, from `planRecordOf`. */
  windows: z.array(z.string()),
  createdAtSeconds: integer(),
  createdBy: z.string(),
  expiresAtSeconds: z.nullable(integer()),
})

export type PlanAssignment = z.infer<typeof assignmentSchema>

interface AssignmentOrder extends z.infer<typeof newAssignmentSchema> {
  readonly windows: readonly string[]
  readonly createdBy: string
}

/** Port: the assignments in force. A new one replaces an earlier assignment of the same party. */
export type PlanAssignments = Records<PlanAssignment, AssignmentOrder>
