/** Refresh families in Redis: one hash for each family, and scripts that change it atomically. */

import * as z from 'zod/mini'
import { acknowledged, mayBeIncomplete } from '../../../redis/acknowledged.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { authorizationServerKeys, renamed } from '../../../redis/keys.ts'
import { credentialLane, searchLanes } from '../../../redis/lanes.ts'
import { malformed, recordIn, sendCommand } from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import {
  END_FAMILY_SCRIPT,
  OPEN_FAMILY_SCRIPT,
  ROTATE_FAMILY_SCRIPT,
} from '../../../redis/scripts.generated.ts'
import { markOf, writeFacts } from '../../revocation/redis/facts.ts'
import {
  type FamilyEnd,
  type RefreshFamilies,
  type RefreshFamily,
  type RotationReply,
  type RotationRequest,
  sessionSchema,
} from '../refresh-family.ts'

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
 *
 * On a cluster, a family is in the lane of its subject, where all cutoffs are that end its session, and its name
 * is drawn for this lane. Earlier versions stored it in the control lane.
 */
export function createRefreshFamilies(
  redis: RedisConnection,
  now: () => number = () => Date.now(),
): RefreshFamilies {
  const { keys: names, lanes } = redis
  const familyKey = (lane: RedisConnection, familyHash: string) =>
    authorizationServerKeys(lane.keys).refreshFamily + familyHash

  /**
   * Ends a family in its lane, and then its session as a fact of the control lane. Its end may be repeated: a
   * gateway may have ended before all lanes had the cutoff.
   */
  async function end(familyHash: string, order: FamilyEnd): Promise<void> {
    const { revokedBeforeKey: key, revokedBeforeSeconds, revokedBeforeTtlSeconds } = order
    const args = [revokedBeforeSeconds, revokedBeforeTtlSeconds]
    const endIn = (lane: RedisConnection) => {
      const keys = [familyKey(lane, familyHash), renamed(key, names, lane.keys), lane.keys.feed]
      return runText(lane, END_FAMILY_SCRIPT, keys, args)
    }
    const place = lanes && (await searchLanes(redis, familyHash, (lane) => find(lane, familyHash)))
    if (place && place.lane.keys !== names) await endIn(acknowledged(place.lane))
    const facts = [{ key, subject: order.subject }]
    if ((await writeFacts(redis, facts, now, endIn)) !== 1) throw malformed()
  }

  const find = async (lane: RedisConnection, familyHash: string) =>
    readFamily(await sendCommand(lane, ['HMGET', familyKey(lane, familyHash), ...FIELDS]))

  /**
   * Uses a token. If replicas do not have the use, a failover could lose it, and a second successor be issued: then the
   * use is undone, unless another request has got the successor. In another lane than the control lane, the
   * fact that its reuse writes is not marked.
   */
  async function rotateIn(lane: RedisConnection, request: RotationRequest): Promise<RotationReply> {
    const { revokedBeforeKey, revokedBeforeSeconds, revokedBeforeTtlSeconds } = request.end
    const inLane = (key: string) => renamed(key, names, lane.keys)
    const cutoffs = [revokedBeforeKey, ...request.revokedBeforeKeys].map(inLane)
    const [own = '', ...others] = cutoffs
    const keys = [familyKey(lane, request.familyHash), own, lane.keys.feed, ...others]
    const fact = { key: revokedBeforeKey, subject: request.end.subject }
    const { presented, successor, nonce } = request
    const over = presented === successor ? lane : acknowledged(lane)
    const args = [
      ...[presented, successor, nonce, request.nowMs, request.graceMs],
      ...[request.issuedAtSeconds, request.startedAtSeconds],
      ...[revokedBeforeSeconds, revokedBeforeTtlSeconds, lane === redis ? markOf(redis, fact) : ''],
    ]
    const run = (...more: string[]) => runText(over, ROTATE_FAMILY_SCRIPT, keys, [...args, ...more])
    const rotated = run()
    // Over the same socket, so that it runs after the use. Nothing waits for it: a retry may come first.
    if (over !== lane) rotated.catch(() => run('undo').catch(() => {}))
    return readRotation(await rotated)
  }

  return {
    keys: names,
    mayBeIncomplete: mayBeIncomplete(redis),
    ...(lanes && { draw: lanes.draw }),

    async open(familyHash, { session, current }, ttlSeconds) {
      const ttlMs = Math.max(1, Math.floor(ttlSeconds * 1000))
      const lane = credentialLane(redis, session.grant.subject)
      await lanes?.point(familyHash, lane, Math.ceil(ttlSeconds))
      const args = [JSON.stringify(session), current, ttlMs]
      const done = await runText(lane, OPEN_FAMILY_SCRIPT, [familyKey(lane, familyHash)], args)
      if (done !== 1) throw malformed()
    },

    async find(familyHash) {
      return (await searchLanes(redis, familyHash, (lane) => find(lane, familyHash)))?.found
    },

    async rotate(request) {
      const known = await searchLanes(redis, request.familyHash, async (lane) => {
        const reply = await rotateIn(lane, request)
        return reply.outcome === 'unknown' ? undefined : reply
      })
      const rotation = known?.found ?? { outcome: 'unknown' as const }
      const isOver = rotation.outcome === 'reused' || rotation.outcome === 'ended'
      if (isOver && mayBeIncomplete(redis)) await end(request.familyHash, request.end)
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
