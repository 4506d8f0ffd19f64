/** Browser sessions and logins in progress in Redis. */

import { type RedisConnection, sentOnce } from '../../redis/connection.ts'
import { keyPart } from '../../redis/key-part.ts'
import { withPrefix } from '../../redis/keys.ts'
import { listOf, malformed, recordIn, sendCommand, textOf } from '../../redis/reply.ts'
import { runText } from '../../redis/script.ts'
import {
  REFERENCE_TOLERANCE_SECONDS,
  type ReferenceRecord,
  storedReference,
} from '../../tokens/reference.ts'
import { loginSchema, type SessionOwner, type SessionStore } from '../session-store.ts'
import {
  END_SESSION_SCRIPT,
  OPEN_SESSION_SCRIPT,
  RENEW_SESSION_SCRIPT,
} from './scripts.generated.ts'

/** Creates the adapter. `now` returns milliseconds since the epoch. */
export function createSessionStore(redis: RedisConnection, now: () => number): SessionStore {
  const { keys: names } = redis
  const once = sentOnce(redis)
  const endScript = withPrefix(END_SESSION_SCRIPT, names)

  const listKey = async ({ issuer, providerSubject }: SessionOwner) =>
    `${names.userSessions}${await keyPart(issuer)}:${await keyPart(providerSubject)}`

  function lifeOf({ expiresAtSeconds }: ReferenceRecord): number {
    const untilSeconds = (expiresAtSeconds ?? 0) + REFERENCE_TOLERANCE_SECONDS
    return Math.max(1, Math.ceil(untilSeconds - now() / 1000))
  }

  return {
    async beginLogin(stateHash, login, lifeSeconds) {
      const key = names.signIn + stateHash
      const reply = await sendCommand(redis, ['SET', key, JSON.stringify(login), 'EX', lifeSeconds])
      if (reply !== 'OK') throw malformed()
    },

    async takeLogin(stateHash) {
      // Not repeated: the second call would not find what the first has removed.
      const text = await sendCommand(once, ['GETDEL', names.signIn + stateHash])
      return text === null ? undefined : recordIn(text, loginSchema)
    },

    async open(session, max) {
      const { id, referenceHash, record, details, endsAtSeconds } = session
      const keys = [names.reference + referenceHash, names.session + id, await listKey(session)]
      const reply = await runText(redis, OPEN_SESSION_SCRIPT, keys, [
        await storedReference(record),
        lifeOf(record),
        referenceHash,
        id,
        JSON.stringify(details),
        Math.floor(now() / 1000),
        endsAtSeconds,
        max,
      ])
      return listOf(reply)
        .map(textOf)
        .filter((other) => other !== id)
    },

    async renew({ id, referenceHash, successorHash, nonce, record, graceSeconds }) {
      const keys = [
        names.session + id,
        names.reference + referenceHash,
        names.reference + successorHash,
      ]
      const reply = await runText(redis, RENEW_SESSION_SCRIPT, keys, [
        referenceHash,
        successorHash,
        nonce,
        await storedReference(record),
        lifeOf(record),
        graceSeconds,
      ])
      return textOf(reply) === '' ? undefined : textOf(reply)
    },

    async remove(id, owner) {
      const reply = await runText(
        redis,
        endScript,
        [names.session + id, await listKey(owner)],
        [id],
      )
      if (reply !== 1) throw malformed()
    },
  }
}
