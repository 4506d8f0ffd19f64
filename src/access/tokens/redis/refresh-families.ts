/** Refresh families in Redis: one hash for each family, and scripts that change it atomically. */

import * as z from 'zod/mini'
import type { RedisConnection } from '../../../redis/connection.ts'
import { authorizationServerKeys } from '../../../redis/keys.ts'
import { malformed, recordIn, sendCommand } from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import { markOf, writeFacts } from '../../revocation/redis/facts.ts'
import {
  type FamilyEnd,
  type RefreshFamilies,
  type RefreshFamily,
  type RotationReply,
  sessionSchema,
} from '../refresh-family.ts'
import { END_FAMILY_SCRIPT, OPEN_FAMILY_SCRIPT, ROTATE_FAMILY_SCRIPT } from './scripts.generated.ts'

const FIELDS = ['session', 'current', 'previous', 'rotated_ms', 'ended']
const wholeNumber = z.string().check(z.regex(/^\d{1,15}$/))
/** The values of `FIELDS`: no family, a family before its first use, and after it. */
const familyReply = z.union([
  z.tuple([z.null(), z.null(), z.null(), z.null(), z.null()]),
  z.tuple([z.string(), z.string(), z.null(), z.null(), z.nullable(z.string())]),
  z.tuple([z.string(), z.string(), z.string(), wholeNumber, z.nullable(z.string())]),
])
const rotationReply = z.union([
  z.tuple([z.enum(['unknown', 'ended', 'reused', 'cut_off'])]),
  z.tuple([z.enum(['rotated', 'replayed']), z.string(), wholeNumber]),
])

/**
 * Creates the adapter. A family contains no credential: tokens are stored as SHA-256, and the nonce
 * is useful only together with the used token.
 */
export function createRefreshFamilies(
  redis: RedisConnection,
  now: () => number = () => Date.now(),
): RefreshFamilies {
  const { keys: names } = redis
  const { refreshFamily } = authorizationServerKeys(names)

  /** Ends a family. Its end may be repeated: a gateway may have ended before all lanes had the cutoff. */
  async function end(familyHash: string, order: FamilyEnd): Promise<void> {
    const { revokedBeforeKey: key, revokedBeforeSeconds, revokedBeforeTtlSeconds } = order
    const keys = [refreshFamily + familyHash, key, names.feed]
    const args = [revokedBeforeSeconds, revokedBeforeTtlSeconds]
    const facts = [{ key, subject: order.subject }]
    const done = await writeFacts(redis, facts, now, (control) =>
      runText(control, END_FAMILY_SCRIPT, keys, args),
    )
    if (done !== 1) throw malformed()
  }

  return {
    keys: names,
    async open(familyHash, { session, current }, ttlSeconds) {
      const ttlMs = Math.max(1, Math.floor(ttlSeconds * 1000))
      const keys = [refreshFamily + familyHash]
      const args = [JSON.stringify(session), current, ttlMs]
      if ((await runText(redis, OPEN_FAMILY_SCRIPT, keys, args)) !== 1) throw malformed()
    },

    async find(familyHash) {
      return readFamily(await sendCommand(redis, ['HMGET', refreshFamily + familyHash, ...FIELDS]))
    },

    async rotate(request) {
      const { revokedBeforeKey, revokedBeforeSeconds, revokedBeforeTtlSeconds } = request.end
      const family = refreshFamily + request.familyHash
      const keys = [family, revokedBeforeKey, names.feed, ...request.revokedBeforeKeys]
      const reply = await runText(redis, ROTATE_FAMILY_SCRIPT, keys, [
        request.presented,
        request.successor,
        request.nonce,
        request.nowMs,
        request.graceMs,
        request.issuedAtSeconds,
        request.startedAtSeconds,
        revokedBeforeSeconds,
        revokedBeforeTtlSeconds,
        markOf(redis, { key: revokedBeforeKey, subject: request.end.subject }),
      ])
      const rotation = readRotation(reply)
      const isOver = rotation.outcome === 'reused' || rotation.outcome === 'ended'
      const mustSpread = redis.lanes !== undefined || (redis.replicasAcked ?? 0) > 0
      if (isOver && mustSpread) await end(request.familyHash, request.end)
      return rotation
    },

    end,
  }
}

function readFamily(reply: unknown): RefreshFamily | undefined {
  const [session, current, hash, rotatedMs, ended] = parsed(reply, familyReply)
  if (session === null) return undefined
  return {
    session: recordIn(session, sessionSchema),
    current,
    previous: hash === null ? undefined : { hash, rotatedAtMs: Number(rotatedMs) },
    ended: ended !== null,
  }
}

function readRotation(reply: unknown): RotationReply {
  const rotation = parsed(reply, rotationReply)
  if (rotation.length === 1) return { outcome: rotation[0] }
  const [outcome, nonce, issuedAt] = rotation
  return { outcome, nonce, issuedAtSeconds: Number(issuedAt) }
}

function parsed<Schema extends z.core.$ZodType>(reply: unknown, schema: Schema): z.output<Schema> {
  const result = z.safeParse(schema, reply)
  if (result.success) return result.data
  throw malformed()
}
