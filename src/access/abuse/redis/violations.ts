/** Counts violations of addresses and subjects in Upstash Redis, and stores the automatic bans. */
import { recordId } from '../../../isolate/random-ids.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { keyPart } from '../../../redis/key-part.ts'
import { endsKey } from '../../../redis/keys.ts'
import { readCount, readList } from '../../../redis/reply.ts'
import { createScript, runScript } from '../../../redis/script.ts'
import { COUNT_VIOLATION_SCRIPT } from '../../../redis/scripts.generated.ts'
import { copyFacts } from '../../revocation/redis/facts.ts'
import { withOwners } from '../../revocation/redis/shared-keys.ts'
import { memberPart } from '../ban.ts'
import type { Ban } from '../ban-record.ts'
import {
  LIMIT_VIOLATION_MS,
  memberOf,
  type Offender,
  type ViolationCounter,
} from '../violations.ts'
import { deriveBanKeys } from './bans.ts'

/** The creator of automatic bans in the list of bans. */
const AUTOMATIC_BANS_CREATOR = 'portcullis'

/** The kinds as the script names them. Only a violation of a limit has a length. */
const KINDS = { limit: 'limit', credential: 'event', inspection: 'event' } as const

/** Creates the adapter over Upstash: one call for each violation, including its ban. */
export function createViolationCounter(
  redis: RedisConnection,
  now: () => number,
): ViolationCounter {
  const script = createScript(COUNT_VIOLATION_SCRIPT)
  const { violations: violationsKey, automaticBans, banRecords } = redis.keys
  return {
    async count(offender, of, { violations, windowSeconds, seconds, maxSeconds, mode, refuses }) {
      const nowMs = now()
      const nowSeconds = Math.floor(nowMs / 1000)
      const ban: Omit<Ban, 'expiresAtSeconds'> = {
        id: recordId(),
        kind: offender.kind,
        value: offender.value,
        issuer: offender.kind === 'subject' ? offender.issuer : null,
        issuers: offender.kind === 'subject' ? [offender.issuer] : [],
        ...(offender.kind === 'subject' &&
          offender.tenant !== undefined && { tenant: offender.tenant }),
        mode,
        refuses: offender.kind === 'address' ? refuses : 'everything',
        reason: `${violations} violations in ${windowSeconds} s`,
        createdAtSeconds: nowSeconds,
        createdBy: AUTOMATIC_BANS_CREATOR,
      }
      const part = await partOf(offender)
      const banKeys = await deriveBanKeys(redis.keys, ban)
      const keys = [
        violationsKey + part,
        automaticBans + part,
        banRecords.prefix + ban.id,
        banRecords.index,
        endsKey(banRecords.index),
        ...withOwners(redis.keys, banKeys),
        // A ban that refuses everything: nothing is counted meanwhile either.
        ...(await deriveBanKeys(redis.keys, { ...ban, refuses: 'everything' })),
      ]
      const reply = await runScript(redis, script, keys, [
        of === undefined ? 'look' : KINDS[of],
        violations,
        windowSeconds,
        seconds,
        maxSeconds,
        nowMs,
        ban.id,
        `${JSON.stringify(ban).slice(0, -1)},"expiresAtSeconds":`,
      ])
      const [banSeconds, quietMs] = readList(reply, 2)
      const count = {
        banSeconds: readCount(banSeconds),
        quietMs: readCount(quietMs, LIMIT_VIOLATION_MS),
      }
      // An earlier ban, too: the gateway that counted its last violation may have ended before the copy.
      if (count.banSeconds > 0) {
        const subject = offender.kind === 'subject' ? offender.value : undefined
        await copyFacts(
          redis,
          banKeys.map((key) => ({ key, subject })),
          now,
          nowSeconds + count.banSeconds,
        )
      }
      return count
    },
  }
}

async function partOf(offender: Offender): Promise<string> {
  if (offender.kind === 'address') return `address:${await keyPart(offender.value)}`
  return `subject:${await memberPart(memberOf(offender))}`
}
