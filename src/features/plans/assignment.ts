/** Assignments: the plans that operators give to API keys, subjects, clients and tenants. */

import * as z from 'zod/mini'
import { PLAN_PARTIES } from '../../access/admission/plan-record.ts'
import { name } from '../../validators/names.ts'
import { newOwnerMembers, type Owners, ownerMembers } from '../../validators/owner.ts'

export const planName = name(64)

/** The body of `POST /-/admin/plans/assignments`. */
export const newAssignmentSchema = z.strictObject({
  by: z.enum(PLAN_PARTIES),
  /** The id of the API key, the subject, client or tenant. */
  value: name(512),
  plan: planName,
  ...newOwnerMembers,
})

/** The stored record of an assignment. The windows are from `planRecordOf`. */
export const assignmentSchema = z.strictObject({
  ...ownerMembers,
  by: z.enum(PLAN_PARTIES),
  value: z.string(),
  plan: z.string(),
})

export type Assignment = z.infer<typeof assignmentSchema>

/** Port: the assignments in force. */
export type PlanAssignments = Owners<Assignment>

/** Port: reads the plans of API keys. Throws `Unavailable` if the store fails. */
export type PlansOfKeys = (ids: readonly string[]) => Promise<readonly (string | null)[]>
