/** Relation tuples in Upstash Redis: written, listed, and told by object. */
import { Unavailable } from '../../errors.ts'
import {
  isAmong,
  MAX_SUBJECTS_TOLD,
  type NamedSubjects,
  type RelationTuples,
  type TupleQuery,
} from '../../relations/store.ts'
import { parseObject, type RelationTuple } from '../../relations/tuple.ts'
import { type RelationKeys, relationKeysOf } from './relation-keys.ts'
import { READ_TUPLES, WRITE_TUPLES } from './relation-tuples-script.ts'
import { versionIn } from './relation-version.ts'
import { type RedisRest, sentOnce } from './rest.ts'
import { ask, resultOf } from './result.ts'
import { createScript } from './script.ts'

/** From first to last, both included, as `ZRANGEBYLEX` takes them. */
type LexRange = readonly [from: string, to: string]

const nodeOf = ({ object, relation }: Pick<RelationTuple, 'object' | 'relation'>) =>
  `${object}#${relation}`
const typeOf = (object: string) => object.slice(0, object.indexOf(':'))

/**
 * Makes the store. `types` are those of the model: without an object and a subject, tuples of these are
 * listed; those of other types are when an object or the type is named.
 *
 * A write is sent once: a call without an answer may have been carried out, and doing it again behind
 * somebody's delete would bring back what was taken away.
 */
export function createRelationTuples(rest: RedisRest, types: Iterable<string>): RelationTuples {
  const once = sentOnce(rest)
  const runWrite = createScript(WRITE_TUPLES)
  const runRead = createScript(READ_TUPLES)
  const allTypes = [...types].sort()

  /** Of one subject, whatever the objects: its own index has them all. */
  async function readOfSubject(keys: RelationKeys, subject: string, query: TupleQuery) {
    const [from, to] = rangeOf(query)
    const key = keys.subjects + subject
    const nodes = await ask(rest, ['ZRANGEBYLEX', key, from, to, 'LIMIT', 0, query.limit + 1])
    return texts(nodes).flatMap((node) => [node, subject])
  }

  async function readOfObjects(keys: RelationKeys, query: TupleQuery) {
    const { object, after, limit } = query
    const asked = object === undefined ? allTypes : [typeOf(object)]
    const last = after === undefined ? '' : typeOf(after.object)
    const left = asked.filter((type) => type >= last)
    const ranges = left.flatMap((type) => rangeOf(query, type === last))
    const told = after === undefined ? ['', ''] : [nodeOf(after), after.subject]
    const args = [keys.tuples, keys.usersets, limit + 1, ...told, ...ranges]
    return texts(
      await runRead(
        rest,
        left.map((type) => keys.index + type),
        args,
      ),
    )
  }

  return {
    async write(tenant, { writes, deletes }) {
      const keys = await relationKeysOf(tenant)
      const args = [
        ...[keys.tuples, keys.usersets, keys.index, keys.subjects],
        ...deletes.flatMap((tuple) => ['-', nodeOf(tuple), typeOf(tuple.object), tuple.subject]),
        ...writes.flatMap((tuple) => ['+', nodeOf(tuple), typeOf(tuple.object), tuple.subject]),
      ]
      const reply = await runWrite(once, [keys.version], args)
      if (!Array.isArray(reply)) throw new Unavailable('redis', 'malformed')
      const [written, deleted, version] = reply
      return { written: count(written), deleted: count(deleted), version: versionIn(version) }
    },

    async read(tenant, query) {
      const { after, limit, subject } = query
      if (after !== undefined && !isAmong(after, query))
        throw new TypeError('RelationTuples.read: `after` is of another query')
      const keys = await relationKeysOf(tenant)
      const found = await (subject === undefined
        ? readOfObjects(keys, query)
        : readOfSubject(keys, subject, query))
      const tuples = found.flatMap((node, at) =>
        at % 2 === 0 ? [tupleOf(node, found[at + 1])] : [],
      )
      if (tuples.length > limit + 1 || tuples.some((tuple) => !isAmong(tuple, query)))
        throw new Unavailable('redis', 'malformed')
      return { tuples: tuples.slice(0, limit), hasMore: tuples.length > limit }
    },

    async subjectsOf(tenant, object, relations) {
      const keys = await relationKeysOf(tenant)
      const sets = relations.flatMap((relation) =>
        [keys.tuples, keys.usersets].map((prefix) => prefix + nodeOf({ object, relation })),
      )
      // The version first: what is read behind it may be newer, never older.
      const [version, ...found] = (
        await rest.send([
          ['GET', keys.version],
          ...sets.map((key) => ['ZRANGE', key, 0, MAX_SUBJECTS_TOLD]),
        ])
      ).map(resultOf)
      const named = relations.map((_, at): NamedSubjects => {
        const subjects = [...texts(found[2 * at]), ...texts(found[2 * at + 1])]
        return {
          subjects: subjects.slice(0, MAX_SUBJECTS_TOLD),
          hasMore: subjects.length > MAX_SUBJECTS_TOLD,
        }
      })
      return { named, version: version === null ? 0 : versionIn(version) }
    },
  }
}

/**
 * Which entries of an index a query is about; where it `continues`, from that of the last tuple on. That
 * entry may have more subjects, so it is among them, unless the subject is given.
 */
function rangeOf({ object, relation, subject, after }: TupleQuery, continues = true): LexRange {
  const begin = object === undefined ? '' : object.endsWith(':') ? object : `${object}#`
  const [from, to]: LexRange =
    relation !== undefined
      ? [`[${begin}${relation}`, `[${begin}${relation}`]
      : begin === ''
        ? ['-', '+']
        : [`[${begin}`, `(${afterAll(begin)}`]
  if (after === undefined || !continues) return [from, to]
  return [`${subject === undefined ? '[' : '('}${nodeOf(after)}`, to]
}

/** The first text behind all that begin so. Its last character is a separator, which has a successor. */
const afterAll = (begin: string) =>
  begin.slice(0, -1) + String.fromCharCode(begin.charCodeAt(begin.length - 1) + 1)

function tupleOf(node: string, subject: string | undefined): RelationTuple {
  const hash = node.indexOf('#')
  const object = node.slice(0, Math.max(hash, 0))
  if (parseObject(object) === undefined || subject === undefined)
    throw new Unavailable('redis', 'malformed')
  return { object, relation: node.slice(hash + 1), subject }
}

function texts(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
  throw new Unavailable('redis', 'malformed')
}

function count(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new Unavailable('redis', 'malformed')
}
