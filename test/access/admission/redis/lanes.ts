/** Lanes on one server, for tests: a lane is only a prefix. */
import { createLaneAdmissionStore } from '../../../../src/access/admission/redis/lane-store.ts'
import type { RedisCommand, RedisConnection } from '../../../../src/redis/connection.ts'
import { DEFAULT_KEY_PREFIX, type RedisKeys } from '../../../../src/redis/keys.ts'
import { type ClusterConnection, createLanes } from '../../../../src/redis/lanes.ts'
import { secretDigest } from '../../../../src/runtimes/node/redis/cluster/digest.ts'

/** One call to one lane. */
export interface Call {
  readonly keys: RedisKeys
  readonly commands: readonly RedisCommand[]
  readonly options: Parameters<RedisConnection['send']>[1]
}

/** Throws if a script names a key of another lane: a cluster refuses it, and one server does not. */
function refuseOtherLanes({ prefix }: RedisKeys, commands: readonly RedisCommand[]): void {
  for (const [name, , count, ...rest] of commands) {
    if (name !== 'EVALSHA' && name !== 'EVAL') continue
    for (const key of rest.slice(0, Number(count)))
      if (!String(key).startsWith(prefix)) throw new Error(`${key} is not a key of ${prefix}`)
  }
}

/** Returns lanes whose calls `send` makes, or passes to `server`. */
export function lanesOver(
  server: RedisConnection,
  count: number,
  send: (
    call: Call,
    pass: () => ReturnType<RedisConnection['send']>,
  ) => ReturnType<RedisConnection['send']> = (_, pass) => pass(),
  credentialsInControl = false,
): ClusterConnection {
  const connect = (keys: RedisKeys): RedisConnection => ({
    ...server,
    keys,
    send: async (commands, options) => {
      refuseOtherLanes(keys, commands)
      return send({ keys, commands, options }, () => server.send(commands, options))
    },
  })
  return createLanes({
    prefix: DEFAULT_KEY_PREFIX,
    count,
    connect,
    credentialsInControl,
    digest: secretDigest,
  })
}

/** Returns a store over lanes, and a function that waits for its refunds. */
export function storeOver(redis: ClusterConnection) {
  const refunds: Promise<boolean>[] = []
  const store = createLaneAdmissionStore(redis, undefined, (done) => refunds.push(done))
  return { store, refunded: () => Promise.all(refunds.splice(0)) }
}

/** Returns a value whose lane is not one of those of `others`. */
export function apartFrom(redis: ClusterConnection, others: readonly string[], name: string) {
  const taken = new Set(others.map((other) => redis.lanes.of(other)))
  for (let n = 0; n < 1_000; n++)
    if (!taken.has(redis.lanes.of(`${name}-${n}`))) return `${name}-${n}`
  throw new Error('too few lanes')
}
