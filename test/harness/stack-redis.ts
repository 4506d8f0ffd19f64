/** The keys of a stack's gateways, on one Redis or in the lanes of a cluster, as black-box tests use them. */
import { Redis } from 'ioredis'
import {
  credentialHash,
  type ReferenceRecord,
  storedReference,
} from '../../src/access/tokens/reference.ts'
import { DEFAULT_KEY_PREFIX, DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { CONTROL_TAG, laneIndex, laneTags, SLOTS, tagSlot } from '../../src/redis/lanes.ts'
import { LANE } from './lanes.ts'
import { LANES } from './recorded-cluster.ts'
import { complaintsAbout } from './redis-dump.ts'
import type { Stack } from './stack.ts'

const FACT_SECONDS = 600

/** Returns the name that a key has on one Redis. */
export const withoutLane = (name: string): string =>
  name.replace(new RegExp(`^${LANE}`), DEFAULT_KEY_PREFIX)

export interface KeptReference {
  /** The credential. */
  readonly text: string
  readonly key: string
  /** The number of the master that has the record. */
  readonly master: number
}

export interface StackKeys {
  /** Writes a fact where the gateways look for it: on a cluster, in every lane. `name` is that of one Redis. */
  setFact(name: string, value?: string | number, seconds?: number): Promise<void>
  /** Stores the record of a credential in the lane of its subject. `create` draws credentials. */
  keep(record: ReferenceRecord, create: () => string): Promise<KeptReference>
  /** Returns the names that match the pattern for one Redis. */
  names(pattern: string): Promise<readonly string[]>
  get(name: string): Promise<string | null>
  set(name: string, value: string): Promise<void>
  ttl(name: string): Promise<number>
  del(name: string): Promise<void>
  /** Returns every violation of docs/storage-schema.md. */
  complaints(): Promise<readonly string[]>
  disconnect(): void
}

/** Masters have equal ranges of slots, in their order. */
const masterOfTag = (tag: string | undefined, masters: number): number =>
  tag === undefined ? 0 : Math.floor((tagSlot(tag) * masters) / SLOTS)

/** Returns a subject for each master that decides about callers. Each fails and recovers for itself. */
export function subjectOfEachMaster({ redisUrls }: Pick<Stack, 'redisUrls'>): readonly string[] {
  const tags = laneTags(LANES)
  const subjects = new Map<number, string>()
  while (subjects.size < redisUrls.length) {
    const subject = crypto.randomUUID()
    const tag = redisUrls.length === 1 ? undefined : tags[laneIndex(subject, LANES)]
    subjects.set(masterOfTag(tag, redisUrls.length), subject)
  }
  return [...subjects.values()]
}

export function keysOf({ redis, redisUrls }: Pick<Stack, 'redis' | 'redisUrls'>): StackKeys {
  const isCluster = redis === 'cluster'
  const servers = redisUrls.map((url) => new Redis(url))
  const tags = isCluster ? laneTags(LANES) : []
  const named = (tag: string, name: string) =>
    `${DEFAULT_KEY_PREFIX}{${tag}}:${name.slice(DEFAULT_KEY_PREFIX.length)}`
  const everywhere = (name: string) =>
    isCluster ? [...tags, CONTROL_TAG].map((tag) => named(tag, name)) : [name]

  const masterOf = (name: string) => masterOfTag(/\{(\w+)\}/.exec(name)?.[1], servers.length)

  function serverOf(name: string): Redis {
    const server = servers[masterOf(name)]
    if (server === undefined) throw new Error(`no master has ${name}`)
    return server
  }

  return {
    async setFact(name, value = '1', seconds = FACT_SECONDS) {
      await Promise.all(everywhere(name).map((key) => serverOf(key).set(key, value, 'EX', seconds)))
    },
    async keep(record, create) {
      const lane = laneIndex(record.subject, LANES)
      let [text, hash] = [create(), '']
      for (;;) {
        hash = await credentialHash(text)
        if (!isCluster || laneIndex(hash, LANES) === lane) break
        text = create()
      }
      const name = DEFAULT_KEYS.reference + hash
      const key = isCluster ? named(tags[lane] ?? '', name) : name
      await serverOf(key).set(key, await storedReference(record), 'EX', FACT_SECONDS)
      return { text, key, master: masterOf(key) }
    },
    async names(pattern) {
      const found = await Promise.all(
        servers.map((server) =>
          server.keys(
            isCluster ? pattern.replace(DEFAULT_KEY_PREFIX, `${DEFAULT_KEY_PREFIX}*`) : pattern,
          ),
        ),
      )
      return found.flat()
    },
    get: (name) => serverOf(name).get(name),
    async set(name, value) {
      await serverOf(name).set(name, value)
    },
    ttl: (name) => serverOf(name).ttl(name),
    async del(name) {
      await serverOf(name).del(name)
    },
    async complaints() {
      const all = await Promise.all(servers.map(complaintsAbout))
      return all.flat()
    },
    disconnect() {
      for (const server of servers) server.disconnect()
    },
  }
}
