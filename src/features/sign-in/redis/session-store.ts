/** Browser sessions and logins in progress in Redis. */
import type * as z from 'zod/mini'
import { readReference } from '../../../access/tokens/redis/references.ts'
import {
  REFERENCE_TOLERANCE_SECONDS,
  type ReferenceRecord,
  storedReference,
} from '../../../access/tokens/reference.ts'
import { parseStoredReference } from '../../../access/tokens/reference-record.ts'
import { sha256 } from '../../../crypto/sha256.ts'
import { type RedisConnection, sentOnce } from '../../../redis/connection.ts'
import { keyPart } from '../../../redis/key-part.ts'
import { signInKeys } from '../../../redis/keys.ts'
import {
  credentialLane,
  lanesOfUse,
  lanesWith,
  recordUse,
  searchLanes,
} from '../../../redis/lanes.ts'
import {
  malformed,
  readableRecord,
  readCount,
  readList,
  readResult,
  readText,
  recordIn,
  sendCommand,
} from '../../../redis/reply.ts'
import { runText } from '../../../redis/script.ts'
import {
  handOverSchema,
  type ListedSession,
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
  LIST_SESSION_SCRIPT,
  OPEN_SESSION_SCRIPT,
  RENEW_SESSION_SCRIPT,
} from './scripts.generated.ts'

/** Attempts to change a record. Requests may renew the session at the same time. */
const MAX_ATTEMPTS = 5
/** The field of the reference at `PUBLIC_URL`. Those of other hosts continue with `:` and the host. */
const PRESENT = 'reference'

/** What is taken once, by its kind of key. */
type Taken = 'signIn' | 'handOver'

/** Names of one server or lane. */
const namesOf = ({ keys }: RedisConnection) => ({ ...keys, ...signInKeys(keys) })

/**
 * Creates the adapter. `now` returns milliseconds since the epoch.
 *
 * On a cluster, a session with its references is in the lane of its subject, and its id and its references are drawn
 * for this lane. The list of a user is in the lane of its subject at the provider, because a logout by the provider
 * names only that. Earlier versions stored all of them in the control lane.
 */
export function createSessionStore(redis: RedisConnection, now: () => number): SessionStore {
  const listKey = async (lane: RedisConnection, { issuer, providerSubject }: SessionOwner) =>
    `${namesOf(lane).userSessions}${await keyPart(issuer)}:${await keyPart(providerSubject)}`

  function lifeOf({ expiresAtSeconds }: ReferenceRecord): number {
    const untilSeconds = (expiresAtSeconds ?? 0) + REFERENCE_TOLERANCE_SECONDS
    return Math.max(1, Math.ceil(untilSeconds - now() / 1000))
  }

  /** Calls `read` in the lane of a session. */
  const search = async <Found>(
    id: string,
    read: (lane: RedisConnection) => Promise<Found | undefined>,
  ) => searchLanes(redis, redis.lanes === undefined ? id : await sha256(id), read)

  /** Returns the lane of a session. Undefined: it has ended. One server is not asked. */
  async function placeOf(id: string): Promise<RedisConnection | undefined> {
    if (redis.lanes === undefined) return redis
    const found = await search(id, async (lane) => {
      const reply = await sendCommand(lane, ['EXISTS', namesOf(lane).session + id])
      return readCount(reply, 1) === 1 || undefined
    })
    return found?.lane
  }

  /** Returns the record of a reference with its lane, its key and its text. */
  async function findRecord(id: string, field: string) {
    const known = await search(
      id,
      async (lane) =>
        (await sendCommand(lane, ['HGET', namesOf(lane).session + id, field])) ?? undefined,
    )
    if (known === undefined) return undefined
    const { lane } = known
    const hash = readText(known.found)
    const key = lane.keys.reference + hash
    const text = await sendCommand(lane, ['GET', key])
    if (text === null) return undefined
    const session = namesOf(lane).session + id
    return { lane, session, hash, key, text: readText(text), record: parseStoredReference(text) }
  }

  async function changeField(
    id: string,
    field: string,
    change: (record: ReferenceRecord) => ReferenceRecord,
  ): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const found = await findRecord(id, field)
      if (found === undefined) return
      const { lane, session, hash, key, text } = found
      const changed = change(found.record)
      const record = await storedReference(changed)
      if (record === text) return
      const life = lifeOf(changed)
      await redis.lanes?.point(hash, lane, life)
      const values = [field, hash, text, record, life]
      // 0: a request has renewed or changed the session meanwhile.
      if ((await runText(lane, CHANGE_RECORD_SCRIPT, [session, key], values)) === 1) return
    }
    throw malformed()
  }

  async function listIds(owner: SessionOwner): Promise<readonly string[]> {
    const since = `(${Math.floor(now() / 1000)}`
    const lists = lanesWith(redis, owner.providerSubject).map(async (lane) => {
      const command = ['ZRANGEBYSCORE', await listKey(lane, owner), since, '+inf']
      return readList(await sendCommand(lane, command)).map(readText)
    })
    return [...new Set((await Promise.all(lists)).flat())]
  }

  async function readListed(
    lane: RedisConnection,
    ids: readonly string[],
  ): Promise<ListedSession[]> {
    const names = namesOf(lane)
    const read = async (field: string) =>
      (await lane.send(ids.map((id) => ['HGET', names.session + id, field]))).map(readResult)
    const [details, places, hashes] = await Promise.all([
      read('details'),
      read('place'),
      read('reference'),
    ])
    // The list has the end of each session that no request changes. Its idle time may end before.
    const records = await lane.send(
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
  }

  /** Stores a text that can be taken once, under a hash that determines its lane. */
  async function keep(kind: Taken, hash: string, value: object, lifeSeconds: number) {
    const lane = credentialLane(redis, hash)
    const command = ['SET', namesOf(lane)[kind] + hash, JSON.stringify(value), 'EX', lifeSeconds]
    if ((await sendCommand(lane, command)) !== 'OK') throw malformed()
  }

  /** Returns the text and removes it. */
  async function take<Schema extends z.core.$ZodType>(kind: Taken, hash: string, schema: Schema) {
    const taken = await searchLanes(
      redis,
      hash,
      // Not repeated: the second call would not find what the first has removed.
      async (lane) =>
        (await sendCommand(sentOnce(lane), ['GETDEL', namesOf(lane)[kind] + hash])) ?? undefined,
    )
    return taken && recordIn(taken.found, schema)
  }

  return {
    ...(redis.lanes && {
      draw: redis.lanes.draw,
      subjectOf: async (id) => (await findRecord(id, PRESENT))?.record.subject,
    }),

    keepHandOver: (codeHash, handOver, lifeSeconds) =>
      keep('handOver', codeHash, handOver, lifeSeconds),
    takeHandOver: (codeHash) => take('handOver', codeHash, handOverSchema),

    async addHost({ id, host, referenceHash, derive }) {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const found = await findRecord(id, PRESENT)
        if (found === undefined) return undefined
        const record = derive(found.record)
        if (record === undefined) return undefined
        const { lane, session, hash, key, text } = found
        const life = lifeOf(record)
        await redis.lanes?.point(referenceHash, lane, life)
        const reply = await runText(
          lane,
          ADD_HOST_SCRIPT,
          [session, key, lane.keys.reference + referenceHash],
          [hash, text, host, referenceHash, await storedReference(record), life],
        )
        // 0: a request has renewed, changed or ended the session meanwhile.
        if (reply === 1) return record
        // The session is on too many hosts.
        if (reply === -1) return undefined
      }
      throw malformed()
    },

    beginLogin: (stateHash, login, lifeSeconds) => keep('signIn', stateHash, login, lifeSeconds),
    takeLogin: (stateHash) => take('signIn', stateHash, loginSchema),

    async open(session, max) {
      const { id, referenceHash, record, details, endsAtSeconds } = session
      const lane = credentialLane(redis, record.subject)
      const ofUser = credentialLane(redis, session.providerSubject)
      const names = namesOf(lane)
      const list = await listKey(ofUser, session)
      const listed = () => [id, now() / 1000, endsAtSeconds, max]
      const keys = [names.reference + referenceHash, names.session + id]
      const stored = [
        await storedReference(record),
        lifeOf(record),
        referenceHash,
        JSON.stringify(details),
        session.tokens ?? '',
        Object.keys(session.place).length === 0 ? '' : JSON.stringify(session.place),
      ]
      if (lane === ofUser) {
        const args = [...listed(), ...stored]
        const reply = await runText(lane, OPEN_SESSION_SCRIPT, [...keys, list], args)
        return readList(reply).map(readText)
      }
      // The list is first, so that a logout by the provider never misses a session.
      await runText(ofUser, LIST_SESSION_SCRIPT, [list], [...listed(), 0])
      await runText(lane, OPEN_SESSION_SCRIPT, keys, [...listed(), ...stored])
      const excess = await runText(ofUser, LIST_SESSION_SCRIPT, [list], [...listed(), 1])
      return readList(excess).map(readText)
    },

    async renew({ id, host, referenceHash, successorHash, nonce, succeed, graceSeconds }) {
      // An isolate may have cached rights that have changed since.
      const found = await searchLanes(redis, referenceHash, (lane) =>
        readReference(lane, referenceHash),
      )
      if (found === undefined) return undefined
      const { lane, found: text } = found
      const names = namesOf(lane)
      const keys = [
        names.session + id,
        names.reference + referenceHash,
        names.reference + successorHash,
      ]
      const record = succeed(parseStoredReference(text))
      const life = lifeOf(record)
      await redis.lanes?.point(successorHash, lane, life)
      const reply = await runText(lane, RENEW_SESSION_SCRIPT, keys, [
        referenceHash,
        successorHash,
        nonce,
        await storedReference(record),
        life,
        graceSeconds,
        readText(text),
        host === undefined ? '' : `:${host}`,
      ])
      return readText(reply) === '' ? undefined : readText(reply)
    },

    ids: listIds,

    async list(owner) {
      const ids = await listIds(owner)
      const byLane = new Map<RedisConnection, string[]>()
      const places = await Promise.all(ids.map(placeOf))
      for (const [at, id] of ids.entries()) {
        const place = places[at]
        if (place !== undefined) byLane.set(place, [...(byLane.get(place) ?? []), id])
      }
      return (await Promise.all([...byLane].map(([lane, own]) => readListed(lane, own)))).flat()
    },

    async findTokens(id) {
      const known = await search(
        id,
        async (lane) =>
          (await sendCommand(lane, ['HGET', namesOf(lane).session + id, 'tokens'])) ?? undefined,
      )
      return known && readText(known.found)
    },

    async reserveRefresh(id, seconds) {
      const lane = await placeOf(id)
      if (lane === undefined) return ''
      const names = namesOf(lane)
      // Not repeated: the second call would find the reservation of the first.
      const replies = await sentOnce(lane).send([
        ['SET', names.sessionRefresh + id, '1', 'NX', 'EX', seconds],
        ['HGET', names.session + id, 'tokens'],
      ])
      const [reserved, tokens] = replies.map(readResult)
      if (reserved !== 'OK') return undefined
      return tokens === null ? '' : readText(tokens)
    },

    async keepTokens(id, tokens, seconds) {
      const lane = await placeOf(id)
      if (lane === undefined) return
      const { session, sessionRefresh } = namesOf(lane)
      const keys = [session + id, sessionRefresh + id]
      const reply = await runText(lane, KEEP_TOKENS_SCRIPT, keys, [tokens, seconds])
      if (reply !== 1) throw malformed()
    },

    async changeRecord(id, change) {
      const known = await search(id, async (lane) => {
        const fields = readList(await sendCommand(lane, ['HKEYS', namesOf(lane).session + id]))
        return fields.length === 0 ? undefined : fields
      })
      for (const field of (known?.found ?? []).map(readText))
        if (field === PRESENT || field.startsWith(`${PRESENT}:`))
          await changeField(id, field, change)
    },

    async isLogoutTokenUsed(hash) {
      for (const lane of lanesOfUse(redis, hash)) {
        const reply = await sendCommand(lane, ['EXISTS', namesOf(lane).logoutToken + hash])
        if (readCount(reply, 1) === 1) return true
      }
      return false
    },

    useLogoutToken: (hash, seconds) =>
      recordUse(redis, hash, (keys) => signInKeys(keys).logoutToken, seconds),

    async remove(id, owner) {
      const lane = await placeOf(id)
      if (lane !== undefined) {
        const keys = [namesOf(lane).session + id, await listKey(lane, owner)]
        if ((await runText(lane, END_SESSION_SCRIPT, keys, [id])) !== 1) throw malformed()
      }
      for (const other of lanesWith(redis, owner.providerSubject))
        if (other !== lane)
          readCount(await sendCommand(other, ['ZREM', await listKey(other, owner), id]), 1)
    },
  }
}
