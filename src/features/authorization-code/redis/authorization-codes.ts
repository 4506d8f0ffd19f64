/** Authorization codes in Redis: one hash for each code, and scripts that change it atomically. */
import * as z from 'zod/mini'
import { copyFacts, markOf } from '../../../access/revocation/redis/facts.ts'
import { revokedTokenKey } from '../../../access/revocation/revocation.ts'
import { type RedisConnection, sentOnce } from '../../../redis/connection.ts'
import { authorizationServerKeys, codeKeys } from '../../../redis/keys.ts'
import { malformed, recordIn, sendCommand } from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import { MAX_ACCESS_TOKEN_SECONDS } from '../../../validators/access-token.ts'
import { type AuthorizationCodes, CODE_SECONDS, codeSchema } from '../authorization-code.ts'
import { REDEEM_CODE_SCRIPT, STORE_CODE_SCRIPT } from './scripts.generated.ts'

/** A replay is recognized for as long as an access token of the first use may be valid. */
const USED_CODE_SECONDS = MAX_ACCESS_TOKEN_SECONDS

const codeReply = z.tuple([z.nullable(z.string()), z.nullable(z.string())])
const outcome = z.enum(['redeemed', 'unknown', 'replayed', 'cut_off'])

/** Creates the adapter. */
export function createAuthorizationCodes(
  redis: RedisConnection,
  now: () => number = () => Date.now(),
): AuthorizationCodes {
  // A retried command would report the code as replayed, and end the session.
  const once = sentOnce(redis)
  const { keys: names } = redis
  const { code: codePrefix } = codeKeys(names)
  const { refreshFamily } = authorizationServerKeys(names)
  return {
    keys: names,
    async put(codeHash, code) {
      const args = [JSON.stringify(code), CODE_SECONDS]
      const done = await runText(redis, STORE_CODE_SCRIPT, [codePrefix + codeHash], args)
      if (done !== 1) throw malformed()
    },

    async find(codeHash) {
      const reply = await sendCommand(redis, ['HMGET', codePrefix + codeHash, 'record', 'used'])
      const parsed = z.safeParse(codeReply, reply)
      if (!parsed.success) throw malformed()
      const [record, used] = parsed.data
      return record === null
        ? undefined
        : { code: recordIn(record, codeSchema), isUsed: used !== null }
    },

    async redeem({ codeHash, familyHash, code, refreshTokenHash, familySeconds, ...rest }) {
      const { revokedBeforeKey, revokedBeforeSeconds, revokedBeforeTtlSeconds } = rest.end
      const cutoff = { key: revokedBeforeKey, subject: rest.end.subject }
      const keys = [
        refreshFamily + familyHash,
        revokedBeforeKey,
        names.feed,
        codePrefix + codeHash,
        revokedTokenKey(names, code.browserSession),
        ...rest.revokedBeforeKeys,
      ]
      const reply = await runText(once, REDEEM_CODE_SCRIPT, keys, [
        refreshTokenHash ?? '',
        JSON.stringify(code.session),
        Math.max(1, Math.floor(familySeconds * 1000)),
        revokedBeforeSeconds,
        revokedBeforeTtlSeconds,
        USED_CODE_SECONDS,
        code.session.startedAtSeconds,
        markOf(redis, cutoff),
      ])
      const parsed = z.safeParse(outcome, reply)
      if (!parsed.success) throw malformed()
      // The script has ended the session of the first use.
      if (parsed.data === 'replayed') await copyFacts(redis, [cutoff], now)
      return parsed.data
    },
  }
}
