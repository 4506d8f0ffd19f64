/** What every external authority has in common: whose it is, and what it cannot be asked. */
import type { RelationAnswer } from '../../relations/authority.ts'

/** Denied, by an authority that has no versions; also what it has no words for, unasked. */
export const DENIED: RelationAnswer = { decision: { outcome: 'denied' }, version: 0 }
export const ALLOWED: RelationAnswer = { decision: { outcome: 'allowed' }, version: 0 }

/** Key of callers without a tenant. */
const WITHOUT_TENANT = ''

/** Undefined: there is nothing for the tenant. A tenant called '' is nobody's. */
export function entryOf<Entry>(
  entries: ReadonlyMap<string, Entry>,
  tenant: string | null,
): Entry | undefined {
  return tenant === WITHOUT_TENANT ? undefined : entries.get(tenant ?? WITHOUT_TENANT)
}
