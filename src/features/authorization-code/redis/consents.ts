/** Consents in Redis: a hash for each user, and a sorted set of sessions for each of its clients. */
import { sha256 } from '../../../crypto/sha256.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { keyPart } from '../../../redis/key-part.ts'
import { codeKeys } from '../../../redis/keys.ts'
import { credentialLane, lanesWith } from '../../../redis/lanes.ts'
import { readCount, readList, readText, recordIn, sendCommand } from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import { type Consent, type Consents, consentSchema, type User } from '../consent.ts'
import { ALLOW_CONSENT_SCRIPT, FORGET_CONSENT_SCRIPT } from './scripts.generated.ts'

/** A consent that a user does not use for this time is forgotten, with all others of the user. */
const CONSENT_SECONDS = 34_560_000

/**
 * Creates the adapter. `now` returns milliseconds since the epoch. On a cluster, the consents of a user are in the lane
 * of its subject. Those that an earlier version stored stay in the control lane until they are given again.
 */
export function createConsents(redis: RedisConnection, now: () => number): Consents {
  const userPart = async ({ issuer, subject, tenant }: User) =>
    tenant === undefined
      ? `${await keyPart(issuer)}:${await keyPart(subject)}`
      : `${await keyPart(issuer)}:${await keyPart(tenant)}:${await keyPart(subject)}`
  const consentsKey = async ({ keys }: RedisConnection, user: User) =>
    codeKeys(keys).consents + (await userPart(user))
  const sessionsKey = async ({ keys }: RedisConnection, user: User, client: string) =>
    `${codeKeys(keys).consentSessions}${await userPart(user)}:${await sha256(client)}`
  const keysOf = async (lane: RedisConnection, user: User, client: string) => [
    await consentsKey(lane, user),
    await sessionsKey(lane, user, client),
  ]
  const parse = (text: unknown) => recordIn(text, consentSchema)
  /** Returns the lane of new consents, and then the other one that may have some. */
  function lanesOf({ subject }: User): readonly [RedisConnection, ...RedisConnection[]] {
    const own = credentialLane(redis, subject)
    return [own, ...lanesWith(redis, subject).filter((lane) => lane !== own)]
  }
  /** Reads all lanes, and fails if one does not answer. */
  const inEach = <Read>(user: User, read: (lane: RedisConnection) => Promise<Read>) =>
    Promise.all(lanesOf(user).map(read))

  return {
    async find(user, client) {
      for (const lane of lanesOf(user)) {
        const command = ['HGET', await consentsKey(lane, user), await sha256(client)]
        const text = await sendCommand(lane, command)
        if (text !== null) return parse(text)
      }
      return undefined
    },

    async list(user) {
      const lists = await inEach(user, async (lane) =>
        readList(await sendCommand(lane, ['HVALS', await consentsKey(lane, user)])).map(parse),
      )
      const all = new Map<string, Consent>()
      for (const consent of lists.flat())
        if (!all.has(consent.client)) all.set(consent.client, consent)
      return [...all.values()].sort((a, b) => b.allowedAtSeconds - a.allowedAtSeconds)
    },

    async allow(user, consent, { session, ended, isRepeated }) {
      const ids = ended.map(({ id }) => id)
      const args = [
        await sha256(consent.client),
        JSON.stringify(consent),
        session.id,
        session.expiresAtSeconds,
        Math.floor(now() / 1000),
        CONSENT_SECONDS,
        isRepeated ? 1 : 0,
        ...ids,
      ]
      let isStored = false
      for (const lane of lanesOf(user)) {
        const keys = await keysOf(lane, user, consent.client)
        const [, sessions = ''] = keys
        if (!isStored)
          isStored = readCount(await runText(lane, ALLOW_CONSENT_SCRIPT, keys, args), 1) === 1
        else if (ids.length > 0) readCount(await sendCommand(lane, ['ZREM', sessions, ...ids]))
      }
      return isStored
    },

    async sessions(user, client) {
      const found = await inEach(user, async (lane) => {
        const command = ['ZRANGE', await sessionsKey(lane, user, client), 0, -1, 'WITHSCORES']
        return readList(await sendCommand(lane, command)).map(String)
      })
      const flat = found.flat()
      const sessions = []
      for (let at = 0; at + 1 < flat.length; at += 2)
        sessions.push({ id: readText(flat[at]), endsAt: Number(flat[at + 1]) })
      return sessions
        .sort((a, b) => a.endsAt - b.endsAt)
        .map(({ id, endsAt }) => ({ id, expiresAtSeconds: Math.floor(endsAt) }))
    },

    async forget(user, client, ended) {
      const args = [await sha256(client), ...ended.map(({ id }) => id)]
      const replies = await inEach(user, async (lane) =>
        runText(lane, FORGET_CONSENT_SCRIPT, await keysOf(lane, user, client), args),
      )
      if (replies.includes(-1)) return 'other_sessions'
      const forgotten = replies.map((reply) => readCount(reply, 1))
      return forgotten.includes(1) ? 'forgotten' : 'unknown'
    },
  }
}
