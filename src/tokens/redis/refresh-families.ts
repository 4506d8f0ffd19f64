/** Refresh families in Redis: one hash for each family, and scripts that change it atomically. */
import { Unavailable } from '../../errors.ts'
import { FEED_KEY } from '../../redis/keys.ts'
import { sendCommand } from '../../redis/reply.ts'
import type { RedisRest } from '../../redis/rest.ts'
import { runText } from '../../redis/script.ts'
import {
  type RefreshFamilies,
  type RefreshFamily,
  type RotationReply,
  refreshFamilyKey,
  sessionSchema,
} from '../refresh-family.ts'
import { END_FAMILY_SCRIPT, OPEN_FAMILY_SCRIPT, ROTATE_FAMILY_SCRIPT } from './scripts.generated.ts'

const WHOLE_NUMBER = /^\d{1,15}$/
const FIELDS = ['session', 'current', 'previous', 'rotated_ms', 'ended']
/** The outcomes of a rotation without a successor. */
const REFUSALS = ['unknown', 'ended', 'reused', 'cut_off'] as const

/**
 * Creates the adapter. A family contains no credential: tokens are stored as SHA-256, and the nonce
 * is useful only together with the used token.
 */
export function createRefreshFamilies(rest: RedisRest): RefreshFamilies {
  async function run(
    script: string,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<void> {
    if ((await runText(rest, script, keys, args)) !== 1) throw new Unavailable('redis', 'malformed')
  }

  return {
    async open(familyHash, { session, current }, ttlSeconds) {
      const ttlMs = Math.max(1, Math.floor(ttlSeconds * 1000))
      const keys = [refreshFamilyKey(familyHash)]
      await run(OPEN_FAMILY_SCRIPT, keys, [JSON.stringify(session), current, ttlMs])
    },

    async find(familyHash) {
      return familyOf(await sendCommand(rest, ['HMGET', refreshFamilyKey(familyHash), ...FIELDS]))
    },

    async rotate(request) {
      const { revokedBeforeKey, revokedBeforeSeconds, revokedBeforeTtlSeconds } = request.end
      const family = refreshFamilyKey(request.familyHash)
      const keys = [family, revokedBeforeKey, FEED_KEY, ...request.revokedBeforeKeys]
      const reply = await runText(rest, ROTATE_FAMILY_SCRIPT, keys, [
        request.presented,
        request.successor,
        request.nonce,
        request.nowMs,
        request.graceMs,
        request.issuedAtSeconds,
        request.startedAtSeconds,
        revokedBeforeSeconds,
        revokedBeforeTtlSeconds,
      ])
      return rotationOf(reply)
    },

    async end(familyHash, { revokedBeforeKey, revokedBeforeSeconds, revokedBeforeTtlSeconds }) {
      const keys = [refreshFamilyKey(familyHash), revokedBeforeKey, FEED_KEY]
      await run(END_FAMILY_SCRIPT, keys, [revokedBeforeSeconds, revokedBeforeTtlSeconds])
    },
  }
}

function familyOf(reply: unknown): RefreshFamily | undefined {
  if (!Array.isArray(reply) || reply.length !== FIELDS.length || !reply.every(isStringOrNull))
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
