import { type RedisConnection, sentOnce } from '../../../redis/connection.ts'
import {
  malformed,
  readCount,
  readList,
  readResult,
  readText,
  sendCommand,
} from '../../../redis/reply.ts'
import { createScript, runScript } from '../../../redis/script.ts'
import { READ_TUPLES_SCRIPT, WRITE_TUPLES_SCRIPT } from '../../../redis/scripts.generated.ts'
import {
  MAX_LISTED_SUBJECTS,
  matchesFilter,
  type NamedSubjects,
  type RelationTuples,
  type TupleQuery,
} from '../store.ts'
import { parseObject, type RelationTuple } from '../tuple.ts'
import { deriveRelationKeys, laneOfTenant, type RelationKeys, versionIn } from './keys.ts'

/** In the syntax of `ZRANGEBYLEX`. */
type LexRange = readonly [from: string, to: string]

const nodeOf = ({ object, relation }: Pick<RelationTuple, 'object' | 'relation'>) =>
  `${object}#${relation}`
const typeOf = (object: string) => object.slice(0, object.indexOf(':'))

/**
 * Creates the store. `types` are the types of the model: a query without object and subject lists
 * only tuples of these types. A query that names an object or a type lists other types as well.
 *
 * A write is sent once, without a retry. A write without a response may have been applied. A retry
 * after a delete by another client would restore the deleted tuple.
 */
export function createRelationTuples(
  redis: RedisConnection,
  types: Iterable<string>,
): RelationTuples {
  const writeTuples = createScript(WRITE_TUPLES_SCRIPT, { keys: 'derived' })
  const readTuples = createScript(READ_TUPLES_SCRIPT, { keys: 'derived' })
  const allTypes = [...types].sort()

  async function readOfSubject(
    lane: RedisConnection,
    keys: RelationKeys,
    subject: string,
    query: TupleQuery,
  ) {
    const [from, to] = selectRange(query)
    const range = [keys.subjects + subject, from, to, 'LIMIT', 0, query.limit + 1]
    const nodes = await sendCommand(lane, ['ZRANGEBYLEX', ...range])
    return texts(nodes).flatMap((node) => [node, subject])
  }

  async function readOfObjects(lane: RedisConnection, keys: RelationKeys, query: TupleQuery) {
    const { object, after, limit } = query
    const listed = object === undefined ? allTypes : [typeOf(object)]
    const last = after === undefined ? '' : typeOf(after.object)
    const left = listed.filter((type) => type >= last)
    const ranges = left.flatMap((type) => selectRange(query, type === last))
    const position = after === undefined ? ['', ''] : [nodeOf(after), after.subject]
    const args = [keys.tuples, keys.usersets, limit + 1, ...position, ...ranges]
    const indexes = left.map((type) => keys.index + type)
    return texts(await runScript(lane, readTuples, indexes, args))
  }

  return {
    async write(tenant, { writes, deletes }) {
      const lane = laneOfTenant(redis, tenant)
      const keys = await deriveRelationKeys(lane.keys, tenant)
      const args = [
        ...[keys.tuples, keys.usersets, keys.index, keys.subjects],
        ...deletes.flatMap((tuple) => ['-', nodeOf(tuple), typeOf(tuple.object), tuple.subject]),
        ...writes.flatMap((tuple) => ['+', nodeOf(tuple), typeOf(tuple.object), tuple.subject]),
      ]
      const reply = await runScript(sentOnce(lane), writeTuples, [keys.version], args)
      const [written, deleted, version] = readList(reply)
      return {
        written: readCount(written),
        deleted: readCount(deleted),
        version: versionIn(version),
      }
    },

    async read(tenant, query) {
      const { after, limit, subject } = query
      if (after !== undefined && !matchesFilter(after, query))
        throw new TypeError('RelationTuples.read: `after` is of another query')
      const lane = laneOfTenant(redis, tenant)
      const keys = await deriveRelationKeys(lane.keys, tenant)
      const found = await (subject === undefined
        ? readOfObjects(lane, keys, query)
        : readOfSubject(lane, keys, subject, query))
      const tuples = found.flatMap((node, at) =>
        at % 2 === 0 ? [parseTuple(node, found[at + 1])] : [],
      )
      if (tuples.length > limit + 1 || tuples.some((tuple) => !matchesFilter(tuple, query)))
        throw malformed()
      return { tuples: tuples.slice(0, limit), hasMore: tuples.length > limit }
    },

    async subjectsOf(tenant, object, relations) {
      const lane = laneOfTenant(redis, tenant)
      const keys = await deriveRelationKeys(lane.keys, tenant)
      const sets = relations.flatMap((relation) =>
        [keys.tuples, keys.usersets].map((prefix) => prefix + nodeOf({ object, relation })),
      )
      // Reads the version first: the subjects that follow may be newer than the version, never
      // older.
      const [version, ...found] = (
        await lane.send([
          ['GET', keys.version],
          ...sets.map((key) => ['ZRANGE', key, 0, MAX_LISTED_SUBJECTS]),
        ])
      ).map(readResult)
      const named = relations.map((_, at): NamedSubjects => {
        const subjects = [...texts(found[2 * at]), ...texts(found[2 * at + 1])]
        return {
          subjects: subjects.slice(0, MAX_LISTED_SUBJECTS),
          hasMore: subjects.length > MAX_LISTED_SUBJECTS,
        }
      })
      return { named, version: version === null ? 0 : versionIn(version) }
    },
  }
}

/**
 * Returns the range of index entries that a query selects. If the list `continues`, the range
 * starts at the entry of the last tuple. That entry is included, because it may have more subjects,
 * unless the query gives the subject.
 */
function selectRange({ object, relation, subject, after }: TupleQuery, continues = true): LexRange {
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

/** Returns the first text after all texts with this prefix, which ends with a separator. */
const afterAll = (begin: string) =>
  begin.slice(0, -1) + String.fromCharCode(begin.charCodeAt(begin.length - 1) + 1)

function parseTuple(node: string, subject: string | undefined): RelationTuple {
  const hash = node.indexOf('#')
  const object = node.slice(0, Math.max(hash, 0))
  if (parseObject(object) === undefined || subject === undefined) throw malformed()
  return { object, relation: node.slice(hash + 1), subject }
}

const texts = (value: unknown): readonly string[] => readList(value).map(readText)
