/** Answers in one pipeline what the authorization server asks before it grants. */
import { Unavailable } from '../../errors.ts'
import type { GrantStore } from '../../oauth/grant-store.ts'
import { type RedisCommand, type RedisRest, sentOnce } from './rest.ts'
import { resultOf } from './result.ts'

/**
 * The adapter over Upstash. `EXISTS` counts the keys that `MGET` reads, because `MGET` answers nil for
 * a key of a wrong type, and nil would read as "not cut off".
 */
export function createGrantStore(rest: RedisRest): GrantStore {
  // Sent again, a proof would look used.
  const once = sentOnce(rest)
  return {
    async consult({ keys, proof }) {
      const commands: RedisCommand[] = []
      if (keys.length > 0) commands.push(['MGET', ...keys], ['EXISTS', ...keys])
      if (proof !== undefined)
        commands.push(['SET', proof.replayKey, '1', 'EX', proof.replayTtlSeconds, 'NX'])
      if (commands.length === 0) return { values: [], proofIsNew: true }
      const redis = proof === undefined ? rest : once
      const results = (await redis.send(commands)).map(resultOf)
      return {
        values: keys.length > 0 ? stringsOf(results[0], results[1], keys.length) : [],
        proofIsNew: proof === undefined || isFirstUse(results.at(-1)),
      }
    },
  }
}

function stringsOf(values: unknown, existing: unknown, length: number): (string | null)[] {
  const isReadable = (value: unknown) => value === null || typeof value === 'string'
  if (!Array.isArray(values) || values.length !== length || !values.every(isReadable))
    throw new Unavailable('redis', 'malformed')
  // More keys than values: one that MGET could not read. Fewer: one expired in between.
  const found = values.filter((value) => value !== null).length
  if (!Number.isSafeInteger(existing) || Number(existing) > found)
    throw new Unavailable('redis', 'malformed')
  return values
}

function isFirstUse(result: unknown): boolean {
  if (result !== 'OK' && result !== null) throw new Unavailable('redis', 'malformed')
  return result === 'OK'
}
