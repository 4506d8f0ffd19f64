/** Where relation tuples are, each tenant's apart from all others. */
import { keyPart } from '../../admission/key.ts'

/**
 * Prefixes of a tenant's keys; what follows is written as in tuples, and so is no other key's.
 *
 * - `tuples` + `<object>#<relation>`: sorted set (all scores 0) of the objects and wildcards that
 *   tuples name: `user:anne`, `user:*`.
 * - `usersets` + `<object>#<relation>`: the same of the usersets that tuples name: `team:eng#member`.
 * - `index` + `<type>`: sorted set (all scores 0) of each `<object>#<relation>` of the type that has
 *   tuples of either kind.
 * - `subjects` + `<subject>`: sorted set (all scores 0) of each `<object>#<relation>` whose tuples
 *   name the subject, which may be a userset or a wildcard.
 * - `version`, a key by itself: string, the version of the last write.
 *
 * None has a TTL: a tuple holds until it is deleted.
 */
export interface RelationKeys {
  readonly tuples: string
  readonly usersets: string
  readonly index: string
  readonly subjects: string
  readonly version: string
}

/** Of callers without a tenant: the empty part, which no tenant has. */
export function relationKeysOf(tenant: string | null): RelationKeys | Promise<RelationKeys> {
  const part = tenant === null ? '' : keyPart(tenant)
  return typeof part === 'string' ? keysOf(part) : part.then(keysOf)
}

const keysOf = (tenant: string): RelationKeys => ({
  tuples: `pc:tuples:${tenant}:`,
  usersets: `pc:usersets:${tenant}:`,
  index: `pc:tuple-index:${tenant}:`,
  subjects: `pc:subject-tuples:${tenant}:`,
  version: `pc:relation-version:${tenant}`,
})
