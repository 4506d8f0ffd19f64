/** Violations of addresses and subjects, counted in Upstash Redis, and the bans that they earn. */
import { v7 } from 'uuid'
import { keyPart } from '../../admission/key.ts'
import type { Offender, ViolationCounter } from '../../admission/violations.ts'
import { Unavailable } from '../../errors.ts'
import type { Ban } from '../../operators/ban.ts'
import { BAN_KEYS, effectsOf } from './bans.ts'
import { HOLD, withHolders } from './holds.ts'
import type { RedisRest } from './rest.ts'
import { createScript } from './script.ts'

/** Whose bans these are, in the list of bans. */
export const AUTOMATIC_BANS_CREATOR = 'portcullis'

/**
 * KEYS: violations, bans so far; record, index and ends of the list of bans; the feed; what `admit`
 * reads, and its holders. ARGV: violations that bring a ban, their window, the first ban and the
 * longest, and now, all in seconds; id and text of the ban, up to its end.
 *
 * Returns for how many more seconds a ban holds, 0 for none. What comes while one does is part of what
 * brought it: it counts no more. A ban begins the count anew.
 */
const COUNT_SCRIPT = `${HOLD}
local now = tonumber(ARGV[5])
local holds = tonumber(redis.call('GET', KEYS[7]) or 0)
if holds > now then return holds - now end
local count = redis.call('INCR', KEYS[1])
if count == 1 or redis.call('TTL', KEYS[1]) < 0 then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
if count < tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
local bans, first, longest = redis.call('INCR', KEYS[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local seconds = math.min(first * 2 ^ math.min(bans - 1, 30), longest)
redis.call('EXPIRE', KEYS[2], string.format('%d', seconds + longest))
local ends = now + seconds
local text = ARGV[7] .. string.format('%d', ends) .. '}'
hold({ unpack(KEYS, 3) }, ARGV[6], text, ends, ends, now, 0)
return seconds
`

/**
 * The adapter over Upstash: one call a violation, its ban included. `now` is milliseconds since the
 * epoch. Throws `Unavailable` for every odd reply.
 */
export function createViolationCounter(rest: RedisRest, now: () => number): ViolationCounter {
  const script = createScript(COUNT_SCRIPT)
  return {
    async count(offender, { violations, windowSeconds, seconds, maxSeconds, mode }) {
      const nowSeconds = Math.floor(now() / 1000)
      const ban: Omit<Ban, 'expiresAtSeconds'> = {
        id: v7(),
        kind: offender.kind,
        value: offender.value,
        issuer: offender.kind === 'subject' ? offender.issuer : null,
        issuers: offender.kind === 'subject' ? [offender.issuer] : [],
        mode,
        reason: `${violations} violations in ${windowSeconds} s`,
        createdAtSeconds: nowSeconds,
        createdBy: AUTOMATIC_BANS_CREATOR,
      }
      const whose = await partOf(offender)
      const reply = await script(
        rest,
        [
          `pc:violations:${whose}`,
          `pc:automatic-bans:${whose}`,
          ...[BAN_KEYS.prefix + ban.id, BAN_KEYS.index, `${BAN_KEYS.index}:ends`],
          ...withHolders(await effectsOf(ban)),
        ],
        [
          ...[violations, windowSeconds, seconds, maxSeconds, nowSeconds],
          ...[ban.id, `${JSON.stringify(ban).slice(0, -1)},"expiresAtSeconds":`],
        ],
      )
      if (typeof reply !== 'number' || !Number.isSafeInteger(reply) || reply < 0)
        throw new Unavailable('redis', 'malformed')
      return reply
    },
  }
}

async function partOf(offender: Offender): Promise<string> {
  const value = await keyPart(offender.value)
  if (offender.kind === 'address') return `address:${value}`
  return `subject:${await keyPart(offender.issuer)}:${value}`
}
