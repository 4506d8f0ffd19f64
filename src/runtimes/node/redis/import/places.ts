/** Finds the lanes of a key of one server. */
import type { Lanes, RedisConnection } from '../../../../redis/connection.ts'
import { createKeys } from '../../../../redis/keys.ts'
import type { Kind, Place } from './kinds.ts'

/** A connection to a cluster. */
export type Cluster = RedisConnection & { readonly lanes: Lanes }

/** A key of one server, and what it is called on the cluster. */
export interface ImportedKey {
  /** Without the prefix. */
  readonly name: string
  readonly kind: string
  readonly to: Place
  /** The whole name in each of the lanes. The first one is compared with the source. */
  readonly copies: readonly { readonly lane: RedisConnection; readonly key: string }[]
  /** Of a fact: the only subject that it concerns. */
  readonly subject?: string | undefined
}

const { subjectBan, observedSubjectBan, revokedBefore } = createKeys('')
/** The beginnings of the facts about one subject each. */
const OF_SUBJECTS = [subjectBan, observedSubjectBan, `${revokedBefore}subject:`]

/** The beginning of a part that is a hash; see `keyPart`. */
const HASHED = '~'

/** Returns the text of a part of a key. Undefined: the part is only a hash of it. */
function textOfPart(part: string): string | undefined {
  if (part.startsWith(HASHED)) return undefined
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

/** Returns the id of the API key that a window counts. */
export function apiKeyOf({ name, rule }: Kind, whole: string): string | undefined {
  if (!('to' in rule) || rule.to !== 'party') return undefined
  const [, by, , id] = whole.slice(name.length).split(':')
  return by === 'key' && id !== undefined ? textOfPart(id) : undefined
}

interface NamedKey {
  readonly kind: Kind
  /** Without the prefix. */
  readonly name: string
  /** The prefix of the names on the server. */
  readonly prefix: string
  /** The subject of the API key that a window counts. */
  readonly keySubject?: string | undefined
}

/** Returns the places of a key. Undefined: no pass copies it. */
export function placesOf(
  cluster: Cluster,
  { kind, name, prefix, keySubject }: NamedKey,
): ImportedKey | undefined {
  const { rule } = kind
  if ('skip' in rule) return undefined
  const { to } = rule
  const rest = name.slice(kind.name.length)
  const parts = rest.split(':')
  const last = textOfPart(parts.at(-1) ?? '')
  const at = (lane: RedisConnection) => ({ lane, key: lane.keys.prefix + name })
  const common = { name, kind: kind.name, to }
  /** Of a value that is only known as a hash, each lane gets a copy. All but one are not read. */
  const inLaneOf = (value: string | undefined) =>
    value === undefined ? cluster.lanes.all.map(at) : [at(cluster.lanes.of(value))]

  switch (to) {
    case 'control':
      return { ...common, copies: [at(cluster)] }
    case 'owners': {
      const inner = rest.startsWith(prefix) ? rest.slice(prefix.length) : rest
      const key = cluster.keys.owners + cluster.keys.prefix + inner
      return { ...common, copies: [{ lane: cluster, key }] }
    }
    case 'fact': {
      const isOfSubject = OF_SUBJECTS.some((beginning) => name.startsWith(beginning))
      return { ...common, copies: [at(cluster)], subject: isOfSubject ? last : undefined }
    }
    case 'party':
      return { ...common, copies: inLaneOf(parts[1] === 'key' ? keySubject : last) }
    case 'tenant': {
      const [tenant = ''] = parts
      return { ...common, copies: tenant === '' ? [at(cluster)] : inLaneOf(textOfPart(tenant)) }
    }
    case 'everywhere':
      return { ...common, copies: [cluster, ...cluster.lanes.all].map(at) }
  }
}
