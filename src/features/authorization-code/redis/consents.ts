/** Consents in Redis: a hash for each user, and a sorted set of sessions for each of its clients. */
import { sha256 } from '../../../crypto/sha256.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { keyPart } from '../../../redis/key-part.ts'
import { codeKeys } from '../../../redis/keys.ts'
import { readCount, readList, readText, recordIn, sendCommand } from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import { type Consents, consentSchema, type User } from '../consent.ts'
import { ALLOW_CONSENT_SCRIPT, FORGET_CONSENT_SCRIPT } from './scripts.generated.ts'

/** A consent that a user does not use for this time is forgotten, with all others of the user. */
const CONSENT_SECONDS = 34_560_000

/** Creates the adapter. `now` returns milliseconds since the epoch. */
export function createConsents(redis: RedisConnection, now: () => number): Consents {
  const names = codeKeys(redis.keys)
  const userPart = async ({ issuer, subject, tenant }: User) =>
    tenant === undefined
      ? `${await keyPart(issuer)}:${await keyPart(subject)}`
      : `${await keyPart(issuer)}:${await keyPart(tenant)}:${await keyPart(subject)}`
  const consentsKey = async (user: User) => names.consents + (await userPart(user))
  const sessionsKey = async (user: User, client: string) =>
    `${names.consentSessions}${await userPart(user)}:${await sha256(client)}`
  const keysOf = async (user: User, client: string) => [
    await consentsKey(user),
    await sessionsKey(user, client),
  ]
  const parse = (text: unknown) => recordIn(text, consentSchema)

  return {
    async find(user, client) {
      const command = ['HGET', await consentsKey(user), await sha256(client)]
      const text = await sendCommand(redis, command)
      return text === null ? undefined : parse(text)
    },

    async list(user) {
      const texts = readList(await sendCommand(redis, ['HVALS', await consentsKey(user)]))
      return texts.map(parse).sort((a, b) => b.allowedAtSeconds - a.allowedAtSeconds)
    },

    async allow(user, consent, { session, ended, isRepeated }) {
      const reply = await runText(redis, ALLOW_CONSENT_SCRIPT, await keysOf(user, consent.client), [
        await sha256(consent.client),
        JSON.stringify(consent),
        session.id,
        session.expiresAtSeconds,
        Math.floor(now() / 1000),
        CONSENT_SECONDS,
        isRepeated ? 1 : 0,
        ...ended.map(({ id }) => id),
      ])
      return readCount(reply, 1) === 1
    },

    async sessions(user, client) {
      const command = ['ZRANGE', await sessionsKey(user, client), 0, -1, 'WITHSCORES']
      const flat = readList(await sendCommand(redis, command)).map(String)
      const found = []
      for (let at = 0; at + 1 < flat.length; at += 2)
        found.push({ id: readText(flat[at]), expiresAtSeconds: Math.floor(Number(flat[at + 1])) })
      return found
    },

    async forget(user, client, ended) {
      const args = [await sha256(client), ...ended.map(({ id }) => id)]
      const reply = await runText(redis, FORGET_CONSENT_SCRIPT, await keysOf(user, client), args)
      if (reply === -1) return 'other_sessions'
      return readCount(reply, 1) === 1 ? 'forgotten' : 'unknown'
    },
  }
}
