/** Reads the stored state for a grant from Redis in one round. */

import { secondsUntil } from '../../../problems/retry-after.ts'
import {
  type RedisCommand,
  type RedisConnection,
  type RedisReply,
  sentOnce,
} from '../../../redis/connection.ts'
import { renamed } from '../../../redis/keys.ts'
import { recordUse } from '../../../redis/lanes.ts'
import { malformed, readResult, readSeconds } from '../../../redis/reply.ts'
import { evalCommand } from '../../../redis/script.ts'
import type { GrantCounter, GrantFacts, GrantStore } from '../grant-store.ts'
import { COUNT_EXCHANGES_SCRIPT } from './scripts.generated.ts'

/**
 * Creates the adapter. `EXISTS` counts the keys that `MGET` reads: `MGET` returns nil for a key of a
 * wrong type, which would mean "no cutoff".
 */
export function createGrantStore(redis: RedisConnection): GrantStore {
  // A retried command would report the proof as used.
  const once = sentOnce(redis)
  return {
    keys: redis.keys,
    isAhead: redis.lanes !== undefined,
    async consult({ keys, subject, proof, counters = [] }) {
      const commands = readCommands(keys)
      const lane = keys.length > 0 && subject !== undefined ? redis.lanes?.of(subject) : undefined
      if (counters.length > 0) commands.push(countCommand(counters))
      // Of a cluster, the lane of its hash records a proof, in the same round.
      const isApart = redis.lanes !== undefined && proof !== undefined
      if (proof !== undefined && !isApart)
        commands.push([
          'SET',
          redis.keys.proof + proof.replayId,
          '1',
          'EX',
          proof.replayTtlSeconds,
          'NX',
        ])
      const sender = proof === undefined ? redis : once
      const [replies, isNew, inLane] = await Promise.all([
        commands.length === 0 ? [] : sender.send(commands),
        !isApart ||
          recordUse(redis, proof.replayId, (names) => names.proof, proof.replayTtlSeconds),
        lane?.send(readCommands(keys.map((key) => renamed(key, redis.keys, lane.keys)))),
      ])
      const results = replies.map(readResult)
      return {
        values: latest(
          keys.length > 0 ? readStrings(results[0], results[1], keys.length) : [],
          inLane && readStrings(...readPair(inLane), keys.length),
        ),
        proofIsNew: proof === undefined || isApart ? isNew : isFirstUse(results.at(-1)),
        exhausted:
          counters.length > 0
            ? readExhausted(results[keys.length > 0 ? 2 : 0], counters)
            : undefined,
      }
    },
  }
}

function readCommands(keys: readonly string[]): RedisCommand[] {
  return keys.length > 0
    ? [
        ['MGET', ...keys],
        ['EXISTS', ...keys],
      ]
    : []
}

function readPair(replies: readonly RedisReply[]): [unknown, unknown] {
  const [values, existing] = replies.map(readResult)
  return [values, existing]
}

/** Returns the later value of each key. A key may be missing in one place while a revocation is copied. */
function latest(
  values: readonly (string | null)[],
  inLane: readonly (string | null)[] = [],
): readonly (string | null)[] {
  return values.map((value, index) => {
    const other = inLane[index] ?? null
    if (value === null || other === null) return value ?? other
    return readSeconds(value) >= readSeconds(other) ? value : other
  })
}

function readStrings(values: unknown, existing: unknown, length: number): (string | null)[] {
  const isReadable = (value: unknown) => value === null || typeof value === 'string'
  if (!Array.isArray(values) || values.length !== length || !values.every(isReadable))
    throw malformed()
  // More keys than values: `MGET` could not read one of them. Fewer: a key expired in between.
  const found = values.filter((value) => value !== null).length
  if (!Number.isSafeInteger(existing) || Number(existing) > found) throw malformed()
  return values
}

function countCommand(counters: readonly GrantCounter[]): RedisCommand {
  const keys = counters.map(({ key }) => key)
  const args = counters.flatMap(({ limit, windowSeconds }) => [limit, windowSeconds])
  return evalCommand(COUNT_EXCHANGES_SCRIPT, keys, args)
}

function readExhausted(reply: unknown, counters: readonly GrantCounter[]): GrantFacts['exhausted'] {
  const [index, leftMs] = Array.isArray(reply) && reply.length === 2 ? reply : []
  if (index === 0) return undefined
  const counter = counters[index - 1]
  if (counter === undefined || !Number.isSafeInteger(leftMs)) throw malformed()
  return { limit: counter.name, retryAfterSeconds: secondsUntil(leftMs, 0) }
}

function isFirstUse(result: unknown): boolean {
  if (result !== 'OK' && result !== null) throw malformed()
  return result === 'OK'
}
