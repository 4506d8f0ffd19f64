/**
 * Refresh families in Upstash Redis: one hash for each family, and scripts that change it
 * atomically.
 */
import { Unavailable } from '../../errors.ts'
import type { RedisCommand, RedisRest } from '../../redis/rest.ts'
import { ask } from '../../redis/result.ts'
import { FEED_KEY, FEED_TELL } from '../../revocation/redis/feed.ts'
import {
  type FamilyEnd,
  type RefreshFamilies,
  type RefreshFamily,
  type RotationReply,
  refreshFamilyKey,
  sessionSchema,
} from '../refresh-family.ts'

const WHOLE_NUMBER = /^\d{1,15}$/
/** The outcomes of a rotation without a successor. */
const REFUSALS = ['unknown', 'ended', 'reused', 'cut_off'] as const

/** Creates the hash and its TTL in one step: a family without a TTL would never expire. */
const OPEN_SCRIPT = `
redis.call('HSET', KEYS[1], 'session', ARGV[1], 'current', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`

/**
 * `finish(at, ttl)`: ends a family. KEYS: family, cutoff of its session, feed. `at` is the cutoff's
 * second, `ttl` its TTL in seconds. The cutoff is written first. If that fails, the family is
 * unchanged for the next attempt.
 */
const END_FUNCTION = `${FEED_TELL}
local function finish(at, ttl)
  feed_tell(KEYS[3], { KEYS[2] })
  local later = math.max(tonumber(redis.call('GET', KEYS[2]) or '0'), tonumber(at))
  local longer = math.max(redis.call('TTL', KEYS[2]), tonumber(ttl))
  redis.call('SET', KEYS[2], string.format('%d', later), 'EX', longer)
  if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'ended', '1') end
end
`

const END_SCRIPT = `${END_FUNCTION}
finish(ARGV[1], ARGV[2])
return 1
`

/**
 * Uses a token. KEYS: family, cutoff of its session, feed, cutoffs that apply. ARGV: hash of the
 * presented token, hash of its successor, nonce, now and grace period in ms, iat, start of the
 * session, the cutoff's second and its TTL. Times are stored as they came, because Lua would round
 * them.
 */
const ROTATE_SCRIPT = `${END_FUNCTION}
local family = redis.call('HMGET', KEYS[1],
  'current', 'previous', 'nonce', 'rotated_ms', 'issued_at', 'ended')
if not family[1] then return {'unknown'} end
if family[6] then return {'ended'} end
local first = ARGV[1] == family[1]
local retry = not first and ARGV[1] == family[2]
  and tonumber(ARGV[4]) - tonumber(family[4]) <= tonumber(ARGV[5])
if not (first or retry) then
  finish(ARGV[8], ARGV[9])
  return {'reused'}
end
for index = 4, #KEYS do
  local cutoff = redis.call('GET', KEYS[index])
  if cutoff then
    if not string.match(cutoff, '^%d+$') then return redis.error_reply('ERR not a cut-off') end
    if tonumber(cutoff) >= tonumber(ARGV[7]) then return {'cut_off'} end
  end
end
if retry then return {'replayed', family[3], family[5]} end
redis.call('HSET', KEYS[1], 'current', ARGV[2], 'previous', ARGV[1], 'nonce', ARGV[3],
  'rotated_ms', ARGV[4], 'issued_at', ARGV[6])
return {'rotated', ARGV[3], ARGV[6]}
`

/**
 * Creates the adapter over Upstash. A family contains no credential: tokens are stored as SHA-256,
 * and the nonce is useful only together with the used token. Scripts are sent in full: a refresh is
 * rare, and Redis then never lacks the script.
 */
export function createRefreshFamilies(rest: RedisRest): RefreshFamilies {
  async function done(command: RedisCommand): Promise<void> {
    if ((await ask(rest, command)) !== 1) throw new Unavailable('redis', 'malformed')
  }

  return {
    async open(familyHash, { session, current }, ttlSeconds) {
      const ttlMs = Math.max(1, Math.floor(ttlSeconds * 1000))
      const key = refreshFamilyKey(familyHash)
      await done(['EVAL', OPEN_SCRIPT, 1, key, JSON.stringify(session), current, ttlMs])
    },
    async find(familyHash) {
      const fields = ['session', 'current', 'previous', 'rotated_ms', 'ended']
      return familyOf(
        await ask(rest, ['HMGET', refreshFamilyKey(familyHash), ...fields]),
        fields.length,
      )
    },
    async rotate(request) {
      const { revokedBeforeKey, revokedBeforeSeconds, revokedBeforeTtlSeconds }: FamilyEnd =
        request.end
      const family = refreshFamilyKey(request.familyHash)
      const keys = [family, revokedBeforeKey, FEED_KEY, ...request.revokedBeforeKeys]
      const reply = await ask(rest, [
        ...['EVAL', ROTATE_SCRIPT, keys.length, ...keys],
        ...[request.presented, request.successor, request.nonce, request.nowMs, request.graceMs],
        ...[
          request.issuedAtSeconds,
          request.startedAtSeconds,
          revokedBeforeSeconds,
          revokedBeforeTtlSeconds,
        ],
      ])
      return rotationOf(reply)
    },
    async end(familyHash, { revokedBeforeKey, revokedBeforeSeconds, revokedBeforeTtlSeconds }) {
      const keys = [refreshFamilyKey(familyHash), revokedBeforeKey, FEED_KEY]
      await done([
        'EVAL',
        END_SCRIPT,
        keys.length,
        ...keys,
        revokedBeforeSeconds,
        revokedBeforeTtlSeconds,
      ])
    },
  }
}

function familyOf(reply: unknown, length: number): RefreshFamily | undefined {
  if (!Array.isArray(reply) || reply.length !== length || !reply.every(isStringOrNull))
    throw new Unavailable('redis', 'malformed')
  if (reply.every((field) => field === null)) return undefined
  const [text, current, hash, rotatedMs, ended] = reply
  if (typeof text !== 'string' || typeof current !== 'string' || !isPair(hash, rotatedMs))
    throw new Unavailable('redis', 'malformed')
  return {
    session: sessionOf(text),
    current,
    previous: typeof hash === 'string' ? { hash, rotatedAtMs: Number(rotatedMs) } : undefined,
    ended: typeof ended === 'string',
  }
}

function isStringOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

function isPair(hash: unknown, rotatedMs: unknown): boolean {
  if (hash === null) return rotatedMs === null
  return typeof rotatedMs === 'string' && WHOLE_NUMBER.test(rotatedMs)
}

function sessionOf(text: string) {
  try {
    return sessionSchema.parse(JSON.parse(text))
  } catch (cause) {
    throw new Unavailable('redis', 'malformed', { cause })
  }
}

function rotationOf(reply: unknown): RotationReply {
  if (!Array.isArray(reply)) throw new Unavailable('redis', 'malformed')
  const [outcome, nonce, issuedAt] = reply as readonly unknown[]
  const refusal = REFUSALS.find((known) => known === outcome)
  if (refusal !== undefined && reply.length === 1) return { outcome: refusal }
  if (
    (outcome === 'rotated' || outcome === 'replayed') &&
    typeof nonce === 'string' &&
    typeof issuedAt === 'string' &&
    WHOLE_NUMBER.test(issuedAt)
  )
    return { outcome, nonce, issuedAtSeconds: Number(issuedAt) }
  throw new Unavailable('redis', 'malformed')
}
