/** Finds the subjects of the values of a source, whose lanes decide about them. */
import type { RedisConnection } from '../../../../redis/connection.ts'
import {
  authorizationServerKeys,
  codeKeys,
  createKeys,
  recordKeys,
  signInKeys,
} from '../../../../redis/keys.ts'
import { readList, readText, sendCommand } from '../../../../redis/reply.ts'
import type { Kind } from './kinds.ts'
import { apiKeyOf } from './places.ts'
import type { Stored } from './values.ts'

const NONE = { prefix: '' }
const { reference: REFERENCE } = createKeys('')
const { session: SESSION } = signInKeys(NONE)
const { code: CODE } = codeKeys(NONE)
const { refreshFamily: FAMILY } = authorizationServerKeys(NONE)

/** A key of the source, without the prefix, with its value. */
export interface FoundKey {
  readonly kind: Kind
  readonly name: string
  readonly value: Stored
}

/** Returns the subject of each API key that a window counts, by the id of the key. */
export function subjectsOfApiKeys(
  source: RedisConnection,
  found: readonly Pick<FoundKey, 'kind' | 'name'>[],
): Promise<ReadonlyMap<string, string>> {
  const { prefix } = recordKeys(source.keys).apiKeyRecords
  return subjectsIn(
    source,
    found.flatMap(({ kind, name }) => apiKeyOf(kind, name) ?? []),
    prefix,
    (text) => textAt(text, 'subject'),
  )
}

/**
 * Returns the subject of each reference, session, family and code, by its name. The control lane decides about API
 * keys, and has what names no subject.
 */
export async function subjectsOfCredentials(
  source: RedisConnection,
  found: readonly FoundKey[],
): Promise<ReadonlyMap<string, string>> {
  const sessions = found.filter(({ kind }) => kind.name === SESSION)
  const referenceOf = ({ value }: FoundKey) => value.members.get('reference') ?? ''
  const byReference = await subjectsIn(
    source,
    sessions.map(referenceOf),
    source.keys.reference,
    subjectOfReference,
  )
  return new Map(
    found.flatMap((key): [string, string][] => {
      const { kind, name, value } = key
      const text = (member: string) => value.members.get(member) ?? ''
      const subject = {
        [REFERENCE]: () => subjectOfReference(text('')),
        [SESSION]: () => byReference.get(referenceOf(key)),
        [FAMILY]: () => textAt(text('session'), 'grant', 'subject'),
        [CODE]: () => textAt(text('record'), 'session', 'grant', 'subject'),
      }[kind.name]?.()
      return subject === undefined ? [] : [[name, subject]]
    }),
  )
}

const subjectOfReference = (text: string): string | undefined =>
  textAt(text, 'record', 'kind') === 'api_key' ? undefined : textAt(text, 'record', 'subject')

/** Reads texts, and returns what each says, by its name. */
async function subjectsIn(
  source: RedisConnection,
  names: readonly string[],
  prefix: string,
  subjectOf: (text: string) => string | undefined,
): Promise<ReadonlyMap<string, string>> {
  const all = [...new Set(names)]
  if (all.length === 0) return new Map()
  const reply = await sendCommand(source, ['MGET', ...all.map((name) => prefix + name)])
  const texts = readList(reply, all.length)
  return new Map(
    all.flatMap((name, at): [string, string][] => {
      const subject = texts[at] === null ? undefined : subjectOf(readText(texts[at]))
      return subject === undefined ? [] : [[name, subject]]
    }),
  )
}

/** Returns a text in JSON. Undefined: the text is unreadable, or has no such member. */
function textAt(text: string, ...path: readonly string[]): string | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  for (const member of path) {
    if (typeof value !== 'object' || value === null) return undefined
    value = Object.getOwnPropertyDescriptor(value, member)?.value
  }
  return typeof value === 'string' ? value : undefined
}
