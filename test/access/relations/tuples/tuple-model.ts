/** Tuples as a plain set, for comparison with the store. */
import type { Redis } from 'ioredis'
import type { RelationKeys } from '../../../../src/access/relations/redis/keys.ts'
import type { RelationTuple } from '../../../../src/access/relations/tuple.ts'
import { parseTuple } from '../../../../src/access/relations/tuple.ts'

/** In the order of their bytes, as Redis compares. */
export const byOctets = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

const typeOf = (object: string) => object.slice(0, object.indexOf(':'))

/** By type, object and relation, objects before usersets. */
export function sorted(tuples: Iterable<string>): string[] {
  const keyed = [...tuples].map((text) => {
    const { object, relation, subject } = parseTuple(text) as RelationTuple
    const parts = [
      typeOf(object),
      `${object}#${relation}`,
      subject.includes('#') ? '1' : '0',
      subject,
    ]
    return { text, parts }
  })
  return keyed
    .sort((a, b) => {
      for (const [at, part] of a.parts.entries()) {
        const order = byOctets(part, b.parts[at] ?? '')
        if (order !== 0) return order
      }
      return 0
    })
    .map(({ text }) => text)
}

/** Every key of a tenant with its content, if exactly these tuples exist. Without the version. */
export function expectedKeys(tuples: Iterable<string>, keys: RelationKeys): Map<string, string[]> {
  const sets = new Map<string, Set<string>>()
  const add = (key: string, member: string) =>
    void sets.set(key, (sets.get(key) ?? new Set()).add(member))
  for (const text of tuples) {
    const { object, relation, subject } = parseTuple(text) as RelationTuple
    const node = `${object}#${relation}`
    add((subject.includes('#') ? keys.usersets : keys.tuples) + node, subject)
    add(keys.index + typeOf(object), node)
    add(keys.subjects + subject, node)
  }
  return new Map([...sets].map(([key, members]) => [key, [...members].sort(byOctets)]))
}

/** Every stored sorted set with its content. Each score must be 0. */
export async function keysIn(redis: Redis): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  for (const key of await redis.keys('*')) {
    if ((await redis.type(key)) !== 'zset') continue
    const entries = await redis.zrange(key, 0, -1, 'WITHSCORES')
    const scores = new Set(entries.filter((_, at) => at % 2 === 1))
    if ([...scores].some((score) => score !== '0'))
      throw new Error(`${key} has scores other than 0`)
    found.set(
      key,
      entries.filter((_, at) => at % 2 === 0),
    )
  }
  return found
}
