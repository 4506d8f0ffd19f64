/** Counts violations of addresses and subjects in Upstash Redis, and stores the automatic bans. */
import { v7 } from 'uuid'
import { Unavailable } from '../../errors.ts'
import { keyPart } from '../../redis/key-part.ts'
import type { RedisRest } from '../../redis/rest.ts'
import { createScript, runScript } from '../../redis/script.ts'
import { HOLD, withHolders } from '../../revocation/redis/holds.ts'
import type { Ban } from '../ban-record.ts'
import { LIMIT_VIOLATION_MS, type Offender, type ViolationCounter } from '../violations.ts'
import { BAN_KEYS, effectsOf } from './bans.ts'

/** The creator of automatic bans in the list of bans. */
export const AUTOMATIC_BANS_CREATOR = 'portcullis'

/**
 * KEYS: violations; number of bans so far; record, index and ends of the list of bans; the feed;
 * the key that `admit` reads, and its holders. ARGV: the kind to count (`limit`, `event`, or `look`
 * for nothing); the violations that lead to a ban; their window, the first ban and the longest ban,
 * in seconds; now, in milliseconds, by the clock that bans use; id and JSON text of the ban, up to
 * its expiry.
 *
 * Returns two numbers. The first is the remaining time of the ban in seconds, 0 for no ban. The
 * second is for how many milliseconds refusals by limits are not counted. While a ban is in force,
 * nothing is counted. A new ban resets the count.
 *
 * The value of the count is `<violations> <start of their window> <start of the last limit
 * violation>`. Its times are in milliseconds by Redis' clock, because the clocks of isolates may
 * differ by more than the length of a violation.
 */
export const VIOLATION_SCRIPT = `${HOLD}
local kind, most, window = ARGV[1], tonumber(ARGV[2]), ARGV[3] * 1000
local wall = tonumber(ARGV[6])
local function banned(ends)
  local left = ends * 1000 - wall
  return { math.ceil(left / 1000), math.min(left, ${LIMIT_VIOLATION_MS}) }
end
local holds = tonumber(redis.call('GET', KEYS[7]) or 0)
if holds * 1000 > wall then return banned(holds) end
if kind == 'look' then return { 0, 0 } end

local clock = redis.call('TIME')
local at = clock[1] * 1000 + math.floor(clock[2] / 1000)
local count, began, latest = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+) (%d+)$')
count, began, latest = tonumber(count or 0), tonumber(began or at), tonumber(latest or 0)
local since = at - latest
-- What lies ahead was written before the clock was set back.
if since < 0 or since >= ${LIMIT_VIOLATION_MS} then since = nil end
if kind == 'limit' and since then return { 0, ${LIMIT_VIOLATION_MS} - since } end
if began > at or at - began >= window then count, began = 0, at end
if kind == 'limit' then latest, since = at, 0 end
count = count + 1
if count < most then
  local life = math.max(began + window - at, since and ${LIMIT_VIOLATION_MS} - since or 0)
  local text = string.format('%.0f %.0f %.0f', count, began, latest)
  redis.call('SET', KEYS[1], text, 'PX', string.format('%.0f', life))
  return { 0, kind == 'limit' and ${LIMIT_VIOLATION_MS} or 0 }
end
redis.call('DEL', KEYS[1])
local now = math.floor(wall / 1000)
local bans, first, longest = redis.call('INCR', KEYS[2]), tonumber(ARGV[4]), tonumber(ARGV[5])
local seconds = math.min(first * 2 ^ math.min(bans - 1, 30), longest)
redis.call('EXPIRE', KEYS[2], string.format('%d', seconds + longest))
local ends = now + seconds
local text = ARGV[8] .. string.format('%d', ends) .. '}'
hold({ unpack(KEYS, 3) }, ARGV[7], text, ends, ends, now, 0)
return banned(ends)
`

/** The kinds as the script names them. Only a violation of a limit has a length. */
const KINDS = { limit: 'limit', credential: 'event', inspection: 'event' } as const

/**
 * Creates the adapter over Upstash: one call for each violation, including its ban. `now` returns
 * milliseconds since the epoch. Throws `Unavailable` for a malformed reply.
 */
export function createViolationCounter(rest: RedisRest, now: () => number): ViolationCounter {
  const script = createScript(VIOLATION_SCRIPT)
  return {
    async count(offender, of, { violations, windowSeconds, seconds, maxSeconds, mode }) {
      const nowMs = now()
      const nowSeconds = Math.floor(nowMs / 1000)
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
      const reply = await runScript(
        rest,
        script,
        [
          `pc:violations:${whose}`,
          `pc:automatic-bans:${whose}`,
          ...[BAN_KEYS.prefix + ban.id, BAN_KEYS.index, `${BAN_KEYS.index}:ends`],
          ...withHolders(await effectsOf(ban)),
        ],
        [
          of === undefined ? 'look' : KINDS[of],
          ...[violations, windowSeconds, seconds, maxSeconds, nowMs],
          ...[ban.id, `${JSON.stringify(ban).slice(0, -1)},"expiresAtSeconds":`],
        ],
      )
      const [banSeconds, quietMs] = Array.isArray(reply) && reply.length === 2 ? reply : []
      if (!isCount(banSeconds) || !isCount(quietMs) || quietMs > LIMIT_VIOLATION_MS)
        throw new Unavailable('redis', 'malformed')
      return { banSeconds, quietMs }
    },
  }
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0

async function partOf(offender: Offender): Promise<string> {
  const value = await keyPart(offender.value)
  if (offender.kind === 'address') return `address:${value}`
  return `subject:${await keyPart(offender.issuer)}:${value}`
}
