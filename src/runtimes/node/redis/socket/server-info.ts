/** What the gateway requires of a Redis server, from its reply to `INFO`. */

/** The oldest version whose commands the gateway uses; Redis 6.2 also supports ACL and TLS. */
const OLDEST = { major: 6, minor: 2 }

/** A server that the gateway must not use. The message completes "REDIS_URL: …". */
export class UnusableServer extends Error {
  override readonly name = 'UnusableServer'
}

/** Throws {@link UnusableServer} if the server says that it is a cluster, a replica, or too old. */
export function requireUsable(info: string): void {
  const field = fieldsOf(info)
  if (field('cluster_enabled') === '1')
    throw new UnusableServer('is a Redis Cluster; set redis+cluster://host:port')
  requireVersion(field('redis_version'))
  // A replica answers with old data: a revocation may be missing.
  if (isReplica(info))
    throw new UnusableServer('is a replica; set the address of the master, or of its Sentinels')
}

/** `slave` in Redis and Valkey; other servers also say `replica` or, if it takes writes as well, `active-replica`. */
export const isReplica = (info: unknown): boolean =>
  /slave|replica/.test(fieldsOf(String(info))('role'))

/** Throws {@link UnusableServer} if the server says that it is no node of a cluster, or too old. */
export function requireCluster(info: string): void {
  const field = fieldsOf(info)
  if (field('cluster_enabled') === '0')
    throw new UnusableServer('is not a Redis Cluster; set redis://host:port')
  requireVersion(field('redis_version'))
}

const fieldsOf = (info: string) => (name: string) =>
  new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? ''

function requireVersion(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isOld = major < OLDEST.major || (major === OLDEST.major && minor < OLDEST.minor)
  if (version !== '' && isOld) {
    throw new UnusableServer(`is Redis ${version}; the oldest supported version is 6.2`)
  }
}
