import { Unavailable } from '../../../errors.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { keyPart } from '../../../redis/key-part.ts'
import { type RedisKeys, relationKeys } from '../../../redis/keys.ts'
import { laneOf } from '../../../redis/lanes.ts'

/**
 * Key prefixes of a tenant's relation tuples. The rest of a key is in the written form of tuples. No
 * other keys have these prefixes.
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
export type RelationKeys = ReturnType<typeof relationKeys>

/** Returns the keys of a tenant; null is for callers without a tenant. No tenant's part is empty. */
export function deriveRelationKeys(
  names: RedisKeys,
  tenant: string | null,
): RelationKeys | Promise<RelationKeys> {
  const part = tenant === null ? '' : keyPart(tenant)
  return typeof part === 'string'
    ? relationKeys(names, part)
    : part.then((text) => relationKeys(names, text))
}

/** Returns the lane of a tenant's tuples. Those without a tenant are in the control lane. */
export const laneOfTenant = (redis: RedisConnection, tenant: string | null): RedisConnection =>
  tenant === null ? redis : laneOf(redis, tenant)

/**
 * Returns the version, in microseconds since the epoch, in a reply of text: some servers cannot
 * return integers of this size. Throws `Unavailable` for anything else.
 */
export function versionIn(value: unknown): number {
  const version = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(version)) throw new Unavailable('redis', 'malformed')
  return version
}
