/** Answers everything that `admit` asks in one pipeline. */
import { secondsOf } from '../../admission/seconds.ts'
import type { AdmissionFacts, AdmissionQuery, AdmissionStore } from '../../admission/store.ts'
import { Unavailable } from '../../errors.ts'
import { createReferenceResolver } from './reference-resolver.ts'
import { type RedisCommand, type RedisReply, type RedisRest, sentOnce } from './rest.ts'
import { askLimit } from './sliding-window.ts'

/**
 * The adapter over Upstash. `MGET` reads revocation, cut-offs, bans and the limits' counters;
 * `EXISTS` counts the same keys again, because `MGET` answers nil for a key of a wrong type and
 * nil would read as "not revoked"; one `EVALSHA` a limit counts the request; and `SET NX` takes a
 * proof of possession, once.
 */
export function createUpstashAdmissionStore(rest: RedisRest): AdmissionStore {
  // Sent again, a proof would look used.
  const once = sentOnce(rest)
  return {
    resolve: createReferenceResolver(rest),
    async consult({ revocation, bans, limits, proof }: AdmissionQuery): Promise<AdmissionFacts> {
      const lookups = [
        ...(revocation.token === undefined ? [] : [revocation.token]),
        ...revocation.cutOffs.map(({ key }) => key),
        ...bans.map(({ key }) => key),
      ]
      const pending = limits.map((limit) => askLimit(limit, rest))
      const counters = pending.flatMap((limit) => limit.counters)
      const commands: RedisCommand[] = [
        ['MGET', ...lookups, ...counters],
        ['EXISTS', ...lookups],
        ...pending.map(({ command }) => command),
      ]
      if (proof !== undefined)
        commands.push(['SET', proof.replayKey, '1', 'NX', 'EX', proof.replayTtlSeconds])
      const redis = proof === undefined ? rest : once
      const [valuesReply, existing, ...counted] = await redis.send(commands)
      const values = stringsOf(valuesReply, lookups.length + counters.length)
      const found = values.slice(0, lookups.length)
      // More keys than values: one that MGET could not read. Fewer: one expired in between.
      const readable = found.filter((value) => value !== null).length
      const there = existing?.result
      if (!Number.isSafeInteger(there) || Number(there) < 0 || Number(there) > readable)
        throw new Unavailable('redis', 'malformed')

      const tokens = revocation.token === undefined ? 0 : 1
      const seconds = found
        .slice(tokens)
        .map((value) => (value === null ? undefined : secondsOf(value)))
      return {
        tokenRevoked: tokens === 1 && found[0] !== null,
        cutOffSeconds: seconds.slice(0, revocation.cutOffs.length),
        bannedUntilSeconds: seconds.slice(revocation.cutOffs.length),
        proofUsed: proof !== undefined && isUsed(counted[pending.length]),
        limits: await Promise.all(
          pending.map((limit, index) =>
            limit.settle(counted[index] ?? {}, [
              Number(values[lookups.length + 2 * index] ?? 0),
              Number(values[lookups.length + 2 * index + 1] ?? 0),
            ]),
          ),
        ),
      }
    },
  }
}

function stringsOf(reply: RedisReply | undefined, length: number): readonly (string | null)[] {
  if (reply?.error !== undefined) throw new Unavailable('redis', 'refused')
  const result = reply?.result
  if (!Array.isArray(result) || result.length !== length || !result.every(isStringOrNull))
    throw new Unavailable('redis', 'malformed')
  return result
}

/** Nil where the key was there; anything but that and `OK` says nothing at all. */
function isUsed(reply: RedisReply | undefined): boolean {
  if (reply?.error !== undefined) throw new Unavailable('redis', 'refused')
  if (reply?.result === null) return true
  if (reply?.result !== 'OK') throw new Unavailable('redis', 'malformed')
  return false
}

function isStringOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}
