/** Violations of addresses and subjects, counted in Upstash Redis. */
import { keyPart } from '../../admission/key.ts'
import type { Offender, ViolationCounter } from '../../admission/violations.ts'
import { Unavailable } from '../../errors.ts'
import type { RedisRest } from './rest.ts'
import { createScript } from './script.ts'

/**
 * KEYS: violations, bans so far. ARGV: violations that bring a ban, their window, the first ban and
 * the longest, all in seconds. Returns the seconds of a ban, 0 for none. A ban begins the count anew.
 */
const COUNT_SCRIPT = `
local count = redis.call('INCR', KEYS[1])
if count == 1 or redis.call('TTL', KEYS[1]) < 0 then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
if count < tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
local bans, first, longest = redis.call('INCR', KEYS[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local seconds = math.min(first * 2 ^ math.min(bans - 1, 30), longest)
redis.call('EXPIRE', KEYS[2], string.format('%d', seconds + longest))
return seconds
`

/** The adapter over Upstash: one call a violation. Throws `Unavailable` for every odd reply. */
export function createViolationCounter(rest: RedisRest): ViolationCounter {
  const script = createScript(COUNT_SCRIPT)
  return {
    async count(offender, { violations, windowSeconds, seconds, maxSeconds }) {
      const whose = await partOf(offender)
      const keys = [`pc:violations:${whose}`, `pc:automatic-bans:${whose}`]
      const reply = await script(rest, keys, [violations, windowSeconds, seconds, maxSeconds])
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
