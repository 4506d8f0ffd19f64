/** A Redis for checks without HTTP: many thousands of queries in a few seconds. */
import type { Redis } from 'ioredis'
import type {
  RelationAnswer,
  RelationQuery,
} from '../../../../src/access/relations/decision-point.ts'
import type { RelationCheck } from '../../../../src/access/relations/redis/check.ts'
import { deriveRelationKeys } from '../../../../src/access/relations/redis/keys.ts'
import type { RelationTuple } from '../../../../src/access/relations/tuple.ts'
import type { RedisCommand, RedisConnection, RedisReply } from '../../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { expectedKeys } from '../tuples/tuple-model.ts'

/** Sends commands like `RedisConnection`. */
export const restOver = (redis: Redis): RedisConnection => ({
  keys: DEFAULT_KEYS,
  async send(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
    const pipeline = redis.pipeline()
    for (const [name, ...args] of commands) pipeline.call(String(name), ...args)
    const replies = (await pipeline.exec()) ?? []
    return replies.map(([error, result]) => (error ? { error: error.message } : { result }))
  },
})

/** Returns the commands that write these tuples to an empty tenant. */
export async function writesOf(
  tuples: readonly RelationTuple[],
  tenant: string | null = null,
): Promise<RedisCommand[]> {
  const texts = tuples.map(({ object, relation, subject }) => `${object}#${relation}@${subject}`)
  const keys = expectedKeys(new Set(texts), await deriveRelationKeys(DEFAULT_KEYS, tenant))
  return [...keys].map(([key, members]) => ['ZADD', key, ...members.flatMap((one) => [0, one])])
}

/**
 * Checks all queries in one call, with tuples that exist only for this call. Throws like
 * `answerOf`.
 */
export async function answersOf(
  rest: RedisConnection,
  check: RelationCheck,
  tuples: readonly RelationTuple[],
  queries: readonly RelationQuery[],
): Promise<RelationAnswer[]> {
  const writes = await writesOf(tuples)
  const commands = await Promise.all(queries.map((query) => check.command(DEFAULT_KEYS, query)))
  const replies = await rest.send([['FLUSHDB'], ...writes, ...commands])
  const answers: RelationAnswer[] = []
  for (const [index, command] of commands.entries())
    answers.push(await check.answerOf(rest, replies[index + 1 + writes.length], command))
  return answers
}
