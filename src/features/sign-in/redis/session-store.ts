/** Browser sessions and logins in progress in Redis. */

import {
  parseStoredReference,
  REFERENCE_TOLERANCE_SECONDS,
  type ReferenceRecord,
  storedReference,
} from '../../../access/tokens/reference.ts'
import { type RedisConnection, sentOnce } from '../../../redis/connection.ts'
import { keyPart } from '../../../redis/key-part.ts'
import { signInKeys } from '../../../redis/keys.ts'
import {
  malformed,
  readableRecord,
  readList,
  readResult,
  readText,
  recordIn,
  sendCommand,
} from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import {
  handOverSchema,
  loginSchema,
  type SessionOwner,
  type SessionStore,
  sessionDetailsSchema,
  sessionPlaceSchema,
} from '../session-store.ts'
import {
  ADD_HOST_SCRIPT,
  CHANGE_RECORD_SCRIPT,
  END_SESSION_SCRIPT,
  KEEP_TOKENS_SCRIPT,
  OPEN_SESSION_SCRIPT,
  RENEW_SESSION_SCRIPT,
} from './scripts.generated.ts'

/** Attempts to change a record. Requests may renew the session at the same time. */
const MAX_ATTEMPTS = 5
/** The field of the reference at `PUBLIC_URL`. Those of other hosts continue with `:` and the host. */
const PRESENT = 'reference'

/** Creates the adapter. `now` returns milliseconds since the epoch. */
export function createSessionStore(redis: RedisConnection, now: () => number): SessionStore {
  const names = { ...redis.keys, ...signInKeys(redis.keys) }
  const once = sentOnce(redis)

  const listKey = async ({ issuer, providerSubject }: SessionOwner) =>
    `${names.userSessions}${await keyPart(issuer)}:${await keyPart(providerSubject)}`

  function lifeOf({ expiresAtSeconds }: ReferenceRecord): number {
    const untilSeconds = (expiresAtSeconds ?? 0) + REFERENCE_TOLERANCE_SECONDS
    return Math.max(1, Math.ceil(untilSeconds - now() / 1000))
  }

  /** Returns the record of a reference with its key and its text. */
  async function findRecord(id: string, field: string) {
    const hash = await sendCommand(redis, ['HGET', names.session + id, field])
    if (hash === null) return undefined
    const key = names.reference + readText(hash)
    const text = await sendCommand(redis, ['GET', key])
    if (text === null) return undefined
    return { hash: readText(hash), key, text: readText(text), record: parseStoredReference(text) }
  }

  async function changeField(
    id: string,
    field: string,
    change: (record: ReferenceRecord) => ReferenceRecord,
  ): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const found = await findRecord(id, field)
      if (found === undefined) return
      const { hash, key, text } = found
      const changed = change(found.record)
      const record = await storedReference(changed)
      if (record === text) return
      const values = [field, hash, text, record, lifeOf(changed)]
      // 0: a request has renewed or changed the session meanwhile.
      if ((await runText(redis, CHANGE_RECORD_SCRIPT, [names.session + id, key], values)) === 1)
        return
    }
    throw malformed()
  }

  return {
    async keepHandOver(codeHash, handOver, lifeSeconds) {
      const key = names.handOver + codeHash
      const text = JSON.stringify(handOver)
      const reply = await sendCommand(redis, ['SET', key, text, 'EX', lifeSeconds])
      if (reply !== 'OK') throw malformed()
    },

    async takeHandOver(codeHash) {
      // Not repeated: the second call would not find what the first has removed.
      const text = await sendCommand(once, ['GETDEL', names.handOver + codeHash])
      return text === null ? undefined : recordIn(text, handOverSchema)
    },

    async addHost({ id, host, referenceHash, derive }) {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const found = await findRecord(id, PRESENT)
        if (found === undefined) return undefined
        const record = derive(found.record)
        if (record === undefined) return undefined
        const { hash, key, text } = found
        const reply = await runText(
          redis,
          ADD_HOST_SCRIPT,
          [names.session + id, key, names.reference + referenceHash],
          [hash, text, host, referenceHash, await storedReference(record), lifeOf(record)],
        )
        // 0: a request has renewed, changed or ended the session meanwhile.
        if (reply === 1) return record
        // The session is on too many hosts.
        if (reply === -1) return undefined
      }
      throw malformed()
    },

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
        now() / 1000,
        endsAtSeconds,
        max,
        session.tokens ?? '',
        Object.keys(session.place).length === 0 ? '' : JSON.stringify(session.place),
      ])
      return readList(reply).map(readText)
    },

    async renew({ id, host, referenceHash, successorHash, nonce, succeed, graceSeconds }) {
      const keys = [
        names.session + id,
        names.reference + referenceHash,
        names.reference + successorHash,
      ]
      // An isolate may have cached rights that have changed since.
      const text = await sendCommand(redis, ['GET', names.reference + referenceHash])
      if (text === null) return undefined
      const record = succeed(parseStoredReference(text))
      const reply = await runText(redis, RENEW_SESSION_SCRIPT, keys, [
        referenceHash,
        successorHash,
        nonce,
        await storedReference(record),
        lifeOf(record),
        graceSeconds,
        readText(text),
        host === undefined ? '' : `:${host}`,
      ])
      return readText(reply) === '' ? undefined : readText(reply)
    },

    async list(owner) {
      const nowSeconds = Math.floor(now() / 1000)
      const key = await listKey(owner)
      const ids = readList(
        await sendCommand(redis, ['ZRANGEBYSCORE', key, `(${nowSeconds}`, '+inf']),
      ).map(readText)
      if (ids.length === 0) return []
      const read = async (field: string) =>
        (await redis.send(ids.map((id) => ['HGET', names.session + id, field]))).map(readResult)
      const [details, places, hashes] = await Promise.all([
        read('details'),
        read('place'),
        read('reference'),
      ])
      // The list has the end of each session that no request changes. Its idle time may end before.
      const records = await redis.send(
        hashes.map((hash) => ['GET', names.reference + (hash === null ? '' : readText(hash))]),
      )
      return records.map(readResult).flatMap((record, index) => {
        const [id = '', shown, place] = [ids[index], details[index], places[index]]
        if (shown === null || record === null) return []
        const { expiresAtSeconds, signIn } = parseStoredReference(record)
        if (now() / 1000 >= (expiresAtSeconds ?? 0)) return []
        const known = recordIn(shown, sessionDetailsSchema)
        const renewAtSeconds = signIn?.renewAtSeconds ?? known.createdAtSeconds
        return [
          {
            id,
            ...known,
            ...(place !== null && readableRecord(place, sessionPlaceSchema)),
            renewAtSeconds,
          },
        ]
      })
    },

    async findTokens(id) {
      const tokens = await sendCommand(redis, ['HGET', names.session + id, 'tokens'])
      return tokens === null ? undefined : readText(tokens)
    },

    async reserveRefresh(id, seconds) {
      // Not repeated: the second call would find the reservation of the first.
      const replies = await once.send([
        ['SET', names.sessionRefresh + id, '1', 'NX', 'EX', seconds],
        ['HGET', names.session + id, 'tokens'],
      ])
      const [reserved, tokens] = replies.map(readResult)
      if (reserved !== 'OK') return undefined
      return tokens === null ? '' : readText(tokens)
    },

    async keepTokens(id, tokens, seconds) {
      const keys = [names.session + id, names.sessionRefresh + id]
      const reply = await runText(redis, KEEP_TOKENS_SCRIPT, keys, [tokens, seconds])
      if (reply !== 1) throw malformed()
    },

    async changeRecord(id, change) {
      const fields = readList(await sendCommand(redis, ['HKEYS', names.session + id])).map(readText)
      for (const field of fields)
        if (field === PRESENT || field.startsWith(`${PRESENT}:`))
          await changeField(id, field, change)
    },

    async useLogoutToken(hash, seconds) {
      const command = ['SET', names.logoutToken + hash, '1', 'NX', 'EX', seconds]
      return (await sendCommand(once, command)) === 'OK'
    },

    async forgetLogoutToken(hash) {
      await sendCommand(redis, ['DEL', names.logoutToken + hash])
    },

    async remove(id, owner) {
      const reply = await runText(
        redis,
        END_SESSION_SCRIPT,
        [names.session + id, await listKey(owner)],
        [id],
      )
      if (reply !== 1) throw malformed()
    },
  }
}
