/** The record that names the plan of a party. */
import { keyPart } from '../../redis/key-part.ts'

/** The parties that an operator gives a plan. */
export const PLAN_PARTIES = ['key', 'subject', 'client', 'tenant'] as const
export type PlanParty = (typeof PLAN_PARTIES)[number]

/** Returns the end of the record's key, after `RedisKeys.plan`. */
export async function planRecordOf(by: PlanParty, issuer: string, value: string): Promise<string> {
  return `${by}:${await keyPart(issuer)}:${await keyPart(value)}`
}
