/** Answers and tenant lookup that the external policy decision points share. */
import type { RelationAnswer } from '../decision-point.ts'

/**
 * A denial from a policy decision point without versions. Also used for short-circuited queries
 * that the server's API cannot express.
 */
export const DENIED: RelationAnswer = { decision: { outcome: 'denied' }, version: 0 }
/** A permission from a policy decision point without versions. */
export const ALLOWED: RelationAnswer = { decision: { outcome: 'allowed' }, version: 0 }

/** The map key for callers without a tenant. */
const WITHOUT_TENANT = ''

/**
 * Returns the entry of a tenant; undefined if it has none. A tenant named '' has none, because that
 * key is for callers without a tenant.
 */
export function entryOf<Entry>(
  entries: ReadonlyMap<string, Entry>,
  tenant: string | null,
): Entry | undefined {
  return tenant === WITHOUT_TENANT ? undefined : entries.get(tenant ?? WITHOUT_TENANT)
}
