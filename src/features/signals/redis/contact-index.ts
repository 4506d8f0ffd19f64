/** The index of contacts in Redis. */
import { memberPart } from '../../../access/abuse/ban.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { signalKeys } from '../../../redis/keys.ts'
import { readList, readResult, readText } from '../../../redis/reply.ts'
import { type ContactIndex, contactHash } from '../contact-index.ts'

export interface ContactIndexOptions {
  readonly redis: RedisConnection
  /** The longest life of a session or token that a login gives. */
  readonly lifeSeconds: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Users with one address. The oldest is dropped. */
const MAX_USERS = 8

export function createContactIndex({ redis, lifeSeconds, now }: ContactIndexOptions): ContactIndex {
  const names = signalKeys(redis.keys)

  return {
    async add(contacts, subject) {
      for (const contact of contacts) {
        const hash = await contactHash(contact)
        const key = names.signalContact + hash
        const ofUser = names.signalContactsOf + (await memberPart({ ...contact, subject }))
        const replies = await redis.send([
          ['ZADD', key, Math.floor(now() / 1000), subject],
          ['ZREMRANGEBYRANK', key, 0, -1 - MAX_USERS],
          ['EXPIRE', key, lifeSeconds],
          ['SADD', ofUser, hash],
          ['EXPIRE', ofUser, lifeSeconds],
        ])
        replies.forEach(readResult)
      }
    },

    async find(contacts) {
      if (contacts.length === 0) return []
      const keys = await Promise.all(
        contacts.map(async (contact) => names.signalContact + (await contactHash(contact))),
      )
      const replies = await redis.send(keys.map((key) => ['ZRANGE', key, 0, -1]))
      return contacts.flatMap(({ issuer }, at) =>
        readList(readResult(replies[at])).map((subject) => ({
          issuer,
          subject: readText(subject),
        })),
      )
    },

    async forget(users) {
      for (const user of users) {
        const ofUser = names.signalContactsOf + (await memberPart(user))
        const [reply] = await redis.send([['SMEMBERS', ofUser]])
        const hashes = readList(readResult(reply)).map(readText)
        const replies = await redis.send([
          ...hashes.map((hash) => ['ZREM', names.signalContact + hash, user.subject]),
          ['DEL', ofUser],
        ])
        replies.forEach(readResult)
      }
    },
  }
}
