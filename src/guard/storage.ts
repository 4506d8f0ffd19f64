/** Where a guard keeps what decides about callers: in Redis, or in the memory of a test. */
import { createRedisCallerStore } from '../access/admission/redis/store.ts'
import { createRevocations } from '../access/revocation/redis/revocations.ts'
import type { Revocations } from '../access/revocation/revocation.ts'
import {
  type GuardStores,
  type RedisClients,
  redisClients,
  redisCounters,
} from '../gateway/guard-services.ts'
import { type Breakers, createBreakers } from '../isolate/breakers.ts'
import type { RedisConnection } from '../redis/connection.ts'
import { createKeys, DEFAULT_KEY_PREFIX } from '../redis/keys.ts'
import type { RedisRestOptions } from '../redis/rest.ts'
import { createRedisByFetch } from '../redis/rest-by-fetch.ts'
import type { GuardOptions, RedisClient, StoresInMemory } from './options.ts'
import { isInMemory, isRedisClient } from './schema.ts'

export interface Storage {
  readonly stores: GuardStores
  readonly revocations: Revocations
  readonly watch: Breakers['watch']
  /** Whether an isolate may read revocations from the feed. */
  readonly hasFeed: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Connects the guard of these options, which are checked. */
export function connectStorage({ redis: given }: Pick<GuardOptions, 'redis'>): Storage {
  if (isInMemory(given)) return inMemory(given as StoresInMemory)
  const now = () => Date.now()
  const { watch } = createBreakers({ now })
  const clients = isRedisClient(given)
    ? connectClients(given as RedisClient, { watch, now })
    : redisClients((calls) => createRedisByFetch({ ...(given as RedisRestOptions), ...calls }), {
        watch,
        now,
      })
  const { redis } = clients
  const { admissionStore: createStore = createRedisCallerStore } = given as RedisClient
  return {
    stores: { admission: createStore(redis), ...redisCounters(clients, now) },
    revocations: createRevocations(redis, now),
    watch,
    hasFeed: true,
    now,
  }
}

function inMemory({ stores, now }: StoresInMemory): Storage {
  const { watch } = createBreakers({ now })
  return { stores, revocations: stores.revocations, watch, hasFeed: false, now }
}

function connectClients(
  client: RedisClient,
  parts: Parameters<typeof redisClients>[1],
): RedisClients {
  if (client.connect !== undefined) return redisClients(client.connect, parts)
  const redis: RedisConnection = {
    ...client,
    keys: client.keys ?? createKeys(DEFAULT_KEY_PREFIX),
    send: (commands, options) => client.send(commands, options),
  }
  return { redis, behindResponses: redis }
}
