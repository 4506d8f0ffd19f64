/** Authorization codes in Redis: one hash for each code, and scripts that change it atomically. */
import * as z from 'zod/mini'
import { markOf } from '../../../access/revocation/redis/facts.ts'
import { revokedTokenKey } from '../../../access/revocation/revocation.ts'
import { createRefreshFamilies } from '../../../access/tokens/redis/refresh-families.ts'
import { mayBeIncomplete } from '../../../redis/acknowledged.ts'
import { type RedisConnection, sentOnce } from '../../../redis/connection.ts'
import { authorizationServerKeys, codeKeys, renamed } from '../../../redis/keys.ts'
import { credentialLane, searchLanes } from '../../../redis/lanes.ts'
import { malformed, recordIn, sendCommand } from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import { MAX_ACCESS_TOKEN_SECONDS } from '../../../validators/access-token.ts'
import {
  type AuthorizationCodes,
  browserCutoffsSchema,
  CODE_SECONDS,
  codeSchema,
  type Redemption,
} from '../authorization-code.ts'
import { REDEEM_CODE_SCRIPT, STORE_CODE_SCRIPT } from './scripts.generated.ts'

/** A replay is recognized for as long as an access token of the first use may be valid. */
const USED_CODE_SECONDS = MAX_ACCESS_TOKEN_SECONDS

const NO_CUTOFFS = { names: [], issuedAtSeconds: 0 }

const text = z.nullable(z.string())
/** The record, whether it was used, the cutoffs of its browser session, and whether its redirect URI is implied. */
const codeReply = z.tuple([text, text, text, text])
const IS_IMPLIED = '1'
const outcome = z.enum(['redeemed', 'unknown', 'replayed', 'cut_off'])

/**
 * Creates the adapter. On a cluster, a code and the family that it opens are in the lane of their subject, so that one
 * script redeems it. Earlier versions stored them in the control lane.
 */
export function createAuthorizationCodes(
  redis: RedisConnection,
  now: () => number = () => Date.now(),
): AuthorizationCodes {
  const { keys: names, lanes } = redis
  const families = createRefreshFamilies(redis, now)
  const codeKey = (lane: RedisConnection, codeHash: string) => codeKeys(lane.keys).code + codeHash

  async function redeemIn(lane: RedisConnection, redemption: Redemption) {
    const { codeHash, familyHash, code, refreshTokenHash, familySeconds, end } = redemption
    const inLane = (key: string) => renamed(key, names, lane.keys)
    const browser = code.browserCutoffs
    const keys = [
      authorizationServerKeys(lane.keys).refreshFamily + familyHash,
      inLane(end.revokedBeforeKey),
      lane.keys.feed,
      codeKey(lane, codeHash),
      revokedTokenKey(lane.keys, code.browserSession),
      ...(browser?.names ?? []).map((name) => lane.keys.prefix + name),
      ...redemption.revokedBeforeKeys.map(inLane),
    ]
    const cutoff = { key: end.revokedBeforeKey, subject: end.subject }
    // Not repeated: the second call would report the code as replayed, and end the session.
    const reply = await runText(sentOnce(lane), REDEEM_CODE_SCRIPT, keys, [
      refreshTokenHash ?? '',
      JSON.stringify(code.session),
      Math.max(1, Math.floor(familySeconds * 1000)),
      end.revokedBeforeSeconds,
      end.revokedBeforeTtlSeconds,
      USED_CODE_SECONDS,
      code.session.startedAtSeconds,
      lane === redis ? markOf(redis, cutoff) : '',
      browser?.names.length ?? 0,
      browser?.issuedAtSeconds ?? 0,
    ])
    const parsed = z.safeParse(outcome, reply)
    if (!parsed.success) throw malformed()
    return parsed.data
  }

  return {
    keys: names,
    ...(lanes && { draw: lanes.draw }),

    async put(codeHash, code) {
      const lane = credentialLane(redis, code.session.grant.subject)
      await lanes?.point(codeHash, lane, USED_CODE_SECONDS)
      const { browserCutoffs = NO_CUTOFFS, isImplied, ...record } = code
      const args = [
        JSON.stringify(record),
        CODE_SECONDS,
        JSON.stringify(browserCutoffs),
        isImplied ? IS_IMPLIED : '',
      ]
      const done = await runText(lane, STORE_CODE_SCRIPT, [codeKey(lane, codeHash)], args)
      if (done !== 1) throw malformed()
    },

    async find(codeHash) {
      const known = await searchLanes(redis, codeHash, async (lane) => {
        const command = ['HMGET', codeKey(lane, codeHash), 'record', 'used', 'login', 'implied']
        const reply = await sendCommand(lane, command)
        const parsed = z.safeParse(codeReply, reply)
        if (!parsed.success) throw malformed()
        const [record, used, login, implied] = parsed.data
        if (record === null) return undefined
        const browserCutoffs = login === null ? undefined : recordIn(login, browserCutoffsSchema)
        const isImplied = implied === IS_IMPLIED
        const code = { ...recordIn(record, codeSchema), browserCutoffs, isImplied }
        return { code, isUsed: used !== null }
      })
      return known?.found
    },

    async redeem(redemption) {
      const known = await searchLanes(redis, redemption.codeHash, async (lane) => {
        const reply = await redeemIn(lane, redemption)
        return reply === 'unknown' ? undefined : reply
      })
      if (known === undefined) return 'unknown'
      const { familyHash, familySeconds, end } = redemption
      // The script has ended the session of the first use in its lane.
      if (known.found === 'replayed' && mayBeIncomplete(redis)) await families.end(familyHash, end)
      if (known.found === 'redeemed')
        await lanes?.point(familyHash, known.lane, Math.ceil(familySeconds))
      return known.found
    },
  }
}
