/** Redis keys of relation tuples, separate for each tenant. */
import { keyPart } from '../../redis/key-part.ts'

/**
 * Key prefixes of a tenant. The rest of a key is in the written form of tuples. No other keys have
 * these prefixes.
 *
 * - `tuples` + `<object>#<relation>`: sorted set (all scores 0) of the objects and wildcards that
 *   tuples name: `user:anne`, `user:*`.
 * - `usersets` + `<object>#<relation>`: sorted set (all scores 0) of the usersets that tuples name:
 *   `team:eng#member`.
 * - `index` + `<type>`: sorted set (all scores 0) of each `<object>#<relation>` of the type that
 *   has tuples of either kind.
 * - `subjects` + `<subject>`: sorted set (all scores 0) of each `<object>#<relation>` that has a
 *   tuple with this subject, which may be a userset or a wildcard.
 * - `version`, a complete key: string, the version of the last write.
 *
 * No key has a TTL: a tuple is valid until it is deleted.
 */
export interface RelationKeys {
  readonly tuples: string
  readonly usersets: string
  readonly index: string
  readonly subjects: string
  readonly version: string
}

/**
 * Returns the keys of a tenant; null is for callers without a tenant. Their key part is empty, and
 * no tenant has an empty part.
 */
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
