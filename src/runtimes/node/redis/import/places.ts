/** Finds the lanes of a key of one server. */
import type { Lanes, RedisConnection } from '../../../../redis/connection.ts'
import { codeKeys, createKeys, replicationKeys, signInKeys } from '../../../../redis/keys.ts'
import { credentialLane } from '../../../../redis/lanes.ts'
import { readText, sendCommand } from '../../../../redis/reply.ts'
import { secretDigest } from '../cluster/digest.ts'
import type { Kind, Place } from './kinds.ts'

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
  /** The note that leads to the key, from the lane of its hash. It has the life of the key. */
  readonly note?: { readonly lane: RedisConnection; readonly key: string; readonly place: number }
}

const { subjectBan, observedSubjectBan, revokedBefore } = createKeys('')
/** The beginnings of the facts about one subject each. */
const OF_SUBJECTS = [subjectBan, observedSubjectBan, `${revokedBefore}subject:`]

const { session: SESSION } = signInKeys({ prefix: '' })
const { consentSessions: CONSENT_SESSIONS } = codeKeys({ prefix: '' })

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

/** Returns the lane of the hash of a credential, and the name of the note that it has. */
function noteOf({ lanes }: Cluster, { name }: Kind, rest: string) {
  // The name of a session has its id, which is not a hash.
  const hash = name === SESSION ? secretDigest(rest) : rest
  const home = lanes.of(hash)
  return { home, key: replicationKeys(home.keys).moved + hash }
}

/**
 * Returns where a key with the place `subject` may be, if the source does not have its value any more, and the name
 * of its note.
 */
export async function placesOfGone(
  cluster: Cluster,
  kind: Kind,
  name: string,
): Promise<readonly { readonly lane: RedisConnection; readonly key: string }[]> {
  const { home, key } = noteOf(cluster, kind, name.slice(kind.name.length))
  const place = await sendCommand(home, ['GET', key])
  const moved = place === null ? undefined : cluster.lanes.all[Number(readText(place))]
  const lanes = new Set([home, cluster, ...(moved === undefined ? [] : [moved])])
  return [
    ...[...lanes].map((lane) => ({ lane, key: lane.keys.prefix + name })),
    { lane: home, key },
  ]
}

interface NamedKey {
  readonly kind: Kind
  /** Without the prefix. */
  readonly name: string
  /** The prefix of the names on the server. */
  readonly prefix: string
  /** The subject of the API key that a window counts. */
  readonly keySubject?: string | undefined
  /** The subject in the value. Undefined: it has none that its lane may decide about. */
  readonly subject?: string | undefined
}

/** Returns the places of a key. Undefined: no pass copies it. */
export function placesOf(
  cluster: Cluster,
  { kind, name, prefix, keySubject, subject }: NamedKey,
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
    case 'subject': {
      if (subject === undefined || cluster.lanes.credentialsInControl)
        return { ...common, copies: [at(cluster)] }
      const lane = cluster.lanes.of(subject)
      const { home, key } = noteOf(cluster, kind, rest)
      const place = cluster.lanes.all.indexOf(lane)
      return {
        ...common,
        copies: [at(lane)],
        ...(home !== lane && { note: { lane: home, key, place } }),
      }
    }
    case 'user': {
      // The name of the sessions of a consent ends with the hash of its client.
      const user = textOfPart(parts.at(kind.name === CONSENT_SESSIONS ? -2 : -1) ?? '')
      return {
        ...common,
        copies: [at(user === undefined ? cluster : credentialLane(cluster, user))],
      }
    }
    case 'hash':
      return { ...common, copies: [at(credentialLane(cluster, rest))] }
    case 'use':
      return { ...common, copies: [at(cluster.lanes.of(rest)), at(cluster)] }
    case 'everywhere':
      return { ...common, copies: [cluster, ...cluster.lanes.all].map(at) }
  }
}
