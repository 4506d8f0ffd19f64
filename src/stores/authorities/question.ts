/** What the external authorities have in common: plain answers, and what is whose. */
import type { RelationAnswer } from '../../relations/authority.ts'

/** Of an authority that has no versions; also for what it has no words for, unasked. */
export const DENIED: RelationAnswer = { decision: { outcome: 'denied' }, version: 0 }
/** The other answer. */
export const ALLOWED: RelationAnswer = { decision: { outcome: 'allowed' }, version: 0 }

/** Key of callers without a tenant. */
const WITHOUT_TENANT = ''

/** The tenant's entry; undefined: it has none. A tenant called '' gets none, for that is nobody's. */
export function entryOf<Entry>(
  entries: ReadonlyMap<string, Entry>,
  tenant: string | null,
): Entry | undefined {
  return tenant === WITHOUT_TENANT ? undefined : entries.get(tenant ?? WITHOUT_TENANT)
}
