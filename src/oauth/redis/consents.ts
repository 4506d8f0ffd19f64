/** Consents in Redis: a hash for each user, and a sorted set of sessions for each of its clients. */
import { sha256 } from '../../crypto/sha256.ts'
import type { RedisConnection } from '../../redis/connection.ts'
import { keyPart } from '../../redis/key-part.ts'
import { countOf, listOf, recordIn, resultOf, sendCommand, textOf } from '../../redis/reply.ts'
import { type Consents, consentSchema, type User } from '../code/consent.ts'

/** A consent that a user does not use for this time is forgotten, with all others of the user. */
const CONSENT_SECONDS = 34_560_000

/** Creates the adapter. `now` returns milliseconds since the epoch. */
export function createConsents(redis: RedisConnection, now: () => number): Consents {
  const { keys: names } = redis
  const userPart = async ({ issuer, subject }: User) =>
    `${await keyPart(issuer)}:${await keyPart(subject)}`
  const consentsKey = async (user: User) => names.consents + (await userPart(user))
  const sessionsKey = async (user: User, client: string) =>
    `${names.consentSessions}${await userPart(user)}:${await sha256(client)}`
  const parse = (text: unknown) => recordIn(text, consentSchema)

  return {
    async find(user, client) {
      const command = ['HGET', await consentsKey(user), await sha256(client)]
      const text = await sendCommand(redis, command)
      return text === null ? undefined : parse(text)
    },

    async list(user) {
      const texts = listOf(await sendCommand(redis, ['HVALS', await consentsKey(user)]))
      return texts.map(parse).sort((a, b) => b.allowedAtSeconds - a.allowedAtSeconds)
    },

    async allow(user, consent, { id, expiresAtSeconds }) {
      const consents = await consentsKey(user)
      const sessions = await sessionsKey(user, consent.client)
      const replies = await redis.send([
        ['ZREMRANGEBYSCORE', sessions, '-inf', Math.floor(now() / 1000)],
        ['ZADD', sessions, expiresAtSeconds, id],
        ['EXPIRE', sessions, CONSENT_SECONDS],
        ['HSET', consents, await sha256(consent.client), JSON.stringify(consent)],
        ['EXPIRE', consents, CONSENT_SECONDS],
      ])
      for (const reply of replies) countOf(resultOf(reply))
    },

    async sessions(user, client) {
      const command = ['ZRANGE', await sessionsKey(user, client), 0, -1, 'WITHSCORES']
      const flat = listOf(await sendCommand(redis, command)).map(String)
      const found = []
      for (let at = 0; at + 1 < flat.length; at += 2)
        found.push({ id: textOf(flat[at]), expiresAtSeconds: Number(flat[at + 1]) })
      return found
    },

    async remove(user, client) {
      const replies = await redis.send([
        ['HDEL', await consentsKey(user), await sha256(client)],
        ['DEL', await sessionsKey(user, client)],
      ])
      return replies.map((reply) => countOf(resultOf(reply)))[0] === 1
    },
  }
}
