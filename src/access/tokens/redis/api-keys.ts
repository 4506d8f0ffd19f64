/** API keys in Redis: the reference that `admit` reads, and the record that operators see. */

import { Denied, ignoreOutage, Unavailable } from '../../../errors.ts'
import { recordId } from '../../../isolate/random-ids.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import { recordKeys } from '../../../redis/keys.ts'
import { laneOf } from '../../../redis/lanes.ts'
import { createRecordList, NEVER_ENDS } from '../../../redis/record-list.ts'
import {
  readList,
  readResult,
  readSeconds,
  readText,
  recordIn,
  sendCommand,
} from '../../../redis/reply.ts'
import { END_API_KEY_SCRIPT, WRITE_API_KEY_SCRIPT } from '../../../redis/scripts.generated.ts'
import { writeFacts } from '../../revocation/redis/facts.ts'
import { revokedTokenKey } from '../../revocation/revocation.ts'
import { tokenIdHash } from '../../token-id.ts'
import { newApiKey, shownPrefixOf } from '../api-key.ts'
import {
  type ApiKey,
  type ApiKeys,
  apiKeySchema,
  type ListedApiKey,
  type OldSecret,
  REFERENCE,
  statusOf,
} from '../api-key-record.ts'
import {
  checkRecord,
  credentialHash,
  REFERENCE_TOLERANCE_SECONDS,
  type ReferenceRecord,
  storedReference,
} from '../reference.ts'
import { parseStoredReference } from '../reference-record.ts'

export interface ApiKeysOptions {
  readonly redis: RedisConnection
  /** The gateway: the issuer and the audience of the keys. */
  readonly publicUrl: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** How long keys that have ended stay listed. Default {@link DEFAULT_ENDED_SECONDS}. */
  readonly endedSeconds?: number | undefined
}

/** 100 days: the keys of the last month and of the quarter before it can still be billed. */
const DEFAULT_ENDED_SECONDS = 100 * 86_400
/**
 * An isolate caches a key for at most 5 minutes after the last read, and checks an open response with it
 * again after at most an hour, and an outage of at most an hour. This is slightly more.
 */
const REMEMBERED_SECONDS = 7_600
/** If other requests change the same key at the same time. */
const MAX_ATTEMPTS = 5
/** A rotation with a grace period ends older ones. */
const MAX_OLD_SECRETS = 8

/** The id of no key. */
const NO_KEY = '00000000-0000-0000-0000-000000000000'

type Secrets = readonly OldSecret[]

/** Returns the text that each change of a record changes. The scripts compare it; see `state_of`. */
const stateOf = ({ tokenId, revision = 0, revokedAtSeconds }: ApiKey): string =>
  revokedAtSeconds === undefined ? `${tokenId} ${revision}` : 'revoked'

/**
 * Creates the adapter. Each change is atomic: the key is stored, listed and valid, or none.
 *
 * On a cluster, the control lane decides about keys. The lane of the subject has copies of the records of secrets,
 * as of revocations; see docs/decisions/0125.
 */
export function createApiKeys({
  redis,
  publicUrl,
  now,
  endedSeconds = DEFAULT_ENDED_SECONDS,
}: ApiKeysOptions): ApiKeys {
  const names = { ...redis.keys, ...recordKeys(redis.keys) }
  const list = createRecordList({ redis, ...names.apiKeyRecords, schema: apiKeySchema, now })
  const nowSeconds = () => Math.floor(now() / 1000)

  /**
   * Stores `key`. To replace `old`, also ends its secrets that are in `ended`, and changes the expiry of
   * those in `kept`. Returns undefined if `old` has changed.
   */
  async function write(
    key: Omit<ApiKey, 'oldSecrets'>,
    replaced?: { readonly old: ApiKey; readonly ended: Secrets; readonly kept: Secrets },
  ): Promise<ApiKey | undefined> {
    const { old, ended = [], kept = [] } = replaced ?? {}
    // Absent in most records, so that earlier versions of the gateway can read them.
    const stored: ApiKey = { ...key, oldSecrets: kept.length === 0 ? undefined : [...kept] }
    const reference = names.reference + key.hash
    const keys = [...list.keysOf(key.id), reference, names.feed]
    const end = key.expiresAtSeconds
    const values = [
      key.id,
      JSON.stringify(stored),
      await storedReference(createReference(key)),
      lifeUntil(end),
      end === null ? NEVER_ENDS : end + endedSeconds,
      old === undefined ? '' : stateOf(old),
      REMEMBERED_SECONDS,
      kept.length,
      endedSeconds,
    ]
    for (const one of kept) {
      keys.push(names.reference + one.hash)
      const reference = createReference(key, one)
      values.push(await storedReference(reference), lifeUntil(one.untilSeconds))
    }
    const ends = await keysOfSecrets(ended)
    keys.push(...ends)
    const facts = factsOf(keys.slice(keys.indexOf(reference)), key)
    values.push(...(await endedReferences(key, ended)))
    const done = await writeFacts(redis, facts, now, (control) =>
      list.run(WRITE_API_KEY_SCRIPT, keys, values, control),
    )
    return done === 1 ? stored : undefined
  }

  async function newSecret(subject: string) {
    const secret = redis.lanes?.draw(subject, () => newApiKey()) ?? newApiKey()
    const hash = await credentialHash(secret)
    return {
      secret,
      members: { tokenId: crypto.randomUUID(), hash, prefix: shownPrefixOf(secret) },
    }
  }

  /**
   * Adds the times of the last use, from the lanes of the subjects. Earlier versions use the control lane. A lane
   * that does not answer stops no other one, and no change of its keys: the last use is then that of the other lane, or null.
   */
  async function withUses(keys: readonly ApiKey[]): Promise<ListedApiKey[]> {
    const uses = new Map<string, number>()
    const byLane = new Map<RedisConnection, string[]>()
    for (const { id, subject } of keys)
      for (const lane of new Set([redis, laneOf(redis, subject)]))
        byLane.set(lane, [...(byLane.get(lane) ?? []), id])
    async function readUses(lane: RedisConnection, ids: readonly string[]): Promise<void> {
      const { apiKeyUse } = recordKeys(lane.keys)
      const reply = await sendCommand(lane, ['MGET', ...ids.map((id) => apiKeyUse + id)])
      for (const [index, use] of readList(reply, ids.length).entries()) {
        const [id, at] = [ids[index] ?? '', useOf(use)]
        if (at !== null) uses.set(id, Math.max(at, uses.get(id) ?? at))
      }
    }
    await Promise.all([...byLane].map(([lane, ids]) => readUses(lane, ids).catch(ignoreOutage)))
    return keys.map((key) => ({ ...key, lastUsedAtSeconds: uses.get(key.id) ?? null }))
  }

  const useOf = (use: unknown) => (use == null ? null : readSeconds(readText(use)))

  /** Returns how long the record of a key or secret is stored. 0: it has no end. */
  function lifeUntil(end: number | null): number {
    if (end === null) return 0
    return Math.max(1, end - nowSeconds() + REFERENCE_TOLERANCE_SECONDS + endedSeconds)
  }

  /** Returns the record of the present secret, or of an old one. */
  function createReference(key: Omit<ApiKey, 'oldSecrets'>, old?: OldSecret): ReferenceRecord {
    return {
      kind: 'api_key',
      key: key.id,
      tokenId: (old ?? key).tokenId,
      tokenIssuer: publicUrl,
      issuer: publicUrl,
      subject: key.subject,
      ...(key.tenant !== null && { tenant: key.tenant }),
      roles: key.roles,
      scopes: key.scopes,
      audiences: [publicUrl],
      issuedAtSeconds: old?.issuedAtSeconds ?? key.rotatedAtSeconds,
      expiresAtSeconds: old?.untilSeconds ?? key.expiresAtSeconds,
    }
  }

  /** Returns the records of secrets that end now: each one names its caller, and is never valid again. */
  function endedReferences(key: ApiKey, secrets: Secrets): Promise<string[]> {
    const { revokedAtSeconds = nowSeconds() } = key
    return Promise.all(
      secrets.map((one) => storedReference({ ...createReference(key, one), revokedAtSeconds })),
    )
  }

  /** Returns two keys for each secret: its reference and its revocation. */
  async function keysOfSecrets(secrets: Secrets): Promise<string[]> {
    const pairs = secrets.map(async ({ hash, tokenId }) => [
      names.reference + hash,
      revokedTokenKey(names, await tokenIdHash(publicUrl, tokenId)),
    ])
    return (await Promise.all(pairs)).flat()
  }

  /** Returns what the lane of the subject must have: revocations, and records of secrets. */
  const factsOf = (keys: readonly string[], { subject }: Pick<ApiKey, 'subject'>) =>
    keys.filter((key) => key !== names.feed).map((key) => ({ key, subject }))

  /** Returns all secrets of a key, the newest first, with their ends after a grace period. */
  function listSecrets(key: ApiKey, graceSeconds: number): Secrets {
    const { tokenId, hash, rotatedAtSeconds: issuedAtSeconds, oldSecrets = [] } = key
    const endSeconds = key.expiresAtSeconds ?? Number.POSITIVE_INFINITY
    const present = { tokenId, hash, issuedAtSeconds, untilSeconds: endSeconds }
    const graceEndSeconds = nowSeconds() + graceSeconds
    return [present, ...oldSecrets].map((one) => ({
      ...one,
      untilSeconds: Math.min(one.untilSeconds, graceEndSeconds),
    }))
  }

  /** Whether no gateway accepts the key any more. */
  const isOver = (key: ApiKey): boolean =>
    statusOf(key, nowSeconds() - REFERENCE_TOLERANCE_SECONDS) !== 'active'

  /** Repeats `change` until no other request changes the key in the meantime. */
  async function changed<Result>(
    id: string,
    change: (key: ApiKey) => Promise<Result | undefined>,
    mayRepeat: (key: ApiKey) => boolean = () => false,
  ): Promise<Result | undefined> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const key = await list.find(id)
      if (key === undefined || (isOver(key) && !mayRepeat(key))) return undefined
      const result = await change(key)
      if (result !== undefined) return result
    }
    throw new Denied({ code: 'conflict' })
  }

  /** Reads a key and its last use in one call, so that the time does not depend on whether it exists. */
  async function find(id: string): Promise<ListedApiKey | undefined> {
    const replies = await redis.send([
      ['GET', names.apiKeyRecords.prefix + id],
      ['GET', names.apiKeyUse + id],
    ])
    const [text, use] = readList(replies.map(readResult), 2)
    const key = text === null ? undefined : recordIn(text, apiKeySchema)
    const atSeconds = useOf(use)
    if (redis.lanes === undefined) return key && { ...key, lastUsedAtSeconds: atSeconds }
    const lane = laneOf(redis, key?.subject ?? id)
    const name = recordKeys(lane.keys).apiKeyUse + id
    const inLane = useOf(await sendCommand(lane, ['GET', name]).catch(ignoreOutage))
    const last = Math.max(atSeconds ?? 0, inLane ?? 0)
    return key && { ...key, lastUsedAtSeconds: last === 0 ? null : last }
  }

  return {
    async list(page, { tenant, subject, status, reference, hidesOthers } = {}) {
      const atSeconds = nowSeconds()
      const isListed = (key: ApiKey) =>
        (tenant === undefined || key.tenant === tenant) &&
        (subject === undefined || key.subject === subject) &&
        (status === undefined || statusOf(key, atSeconds) === status) &&
        (reference === undefined || key.metadata?.[REFERENCE] === reference)
      const isFiltered = [tenant, subject, status, reference].some((value) => value !== undefined)
      const { items, ...rest } = await list.list(
        page,
        isFiltered ? { isListed, hidesOthers: hidesOthers === true } : undefined,
      )
      return { items: await withUses(items), ...rest }
    },

    find,

    async identify(secret) {
      const hash = await credentialHash(secret)
      const text = await sendCommand(redis, ['GET', names.reference + hash])
      const record = text === null ? undefined : parseStoredReference(text)
      const use = { audience: publicUrl, nowMs: now() }
      const isValid = record !== undefined && checkRecord(record, use) === undefined
      const key = await find((isValid && record.key) || NO_KEY)
      return key && { key, isPresent: key.hash === hash }
    },

    async create(described, createdBy, issuedAtSeconds, createdByName) {
      const { name, subject, roles, scopes, tenant, expiresInSeconds, metadata } = described
      const createdAtSeconds = nowSeconds()
      const { secret, members } = await newSecret(subject)
      const key = await write({
        ...members,
        id: recordId(),
        name,
        subject,
        roles: roles ?? [],
        scopes: scopes ?? [],
        tenant: tenant ?? null,
        createdAtSeconds,
        createdBy,
        rotatedAtSeconds: issuedAtSeconds ?? createdAtSeconds,
        expiresAtSeconds:
          expiresInSeconds === undefined ? null : createdAtSeconds + expiresInSeconds,
        ...(metadata !== undefined && { metadata }),
        ...(createdByName !== undefined && { createdByName }),
      })
      // The id is new, so no other request can have changed its record.
      if (key === undefined) throw new Unavailable('redis', 'malformed')
      return { key, secret }
    },

    async update(id, { name, metadata, expiresInSeconds }) {
      const key = await changed(id, (old) => {
        const endSeconds =
          typeof expiresInSeconds === 'number'
            ? nowSeconds() + expiresInSeconds
            : expiresInSeconds === undefined
              ? old.expiresAtSeconds
              : null
        const kept = (old.oldSecrets ?? [])
          .filter(({ untilSeconds }) => untilSeconds > nowSeconds())
          .map((one) => ({
            ...one,
            untilSeconds: Math.min(one.untilSeconds, endSeconds ?? Number.POSITIVE_INFINITY),
          }))
        const key = {
          ...old,
          name: name ?? old.name,
          metadata: metadata ?? old.metadata,
          expiresAtSeconds: endSeconds,
          revision: (old.revision ?? 0) + 1,
        }
        return write(key, { old, ended: [], kept })
      })
      return key && (await withUses([key]))[0]
    },

    rotate: (id, { graceSeconds = 0, issuedAtSeconds } = {}) =>
      changed(id, async (old) => {
        const secrets = listSecrets(old, graceSeconds)
        const kept = secrets
          .filter(({ untilSeconds }) => untilSeconds > nowSeconds())
          .slice(0, MAX_OLD_SECRETS)
        const ended = secrets.filter((one) => !kept.includes(one))
        const { secret, members } = await newSecret(old.subject)
        const rotatedAtSeconds = issuedAtSeconds ?? nowSeconds()
        const key = await write({ ...old, ...members, rotatedAtSeconds }, { old, ended, kept })
        return key && { key, secret }
      }),

    async end(id, { by, plan } = {}) {
      let wasActive = false
      const ended = await changed(
        id,
        async (key) => {
          wasActive ||= key.revokedAtSeconds === undefined
          const { revokedAtSeconds = nowSeconds() } = key
          // It keeps the old secrets, so that a repeated call finds them.
          const record: ApiKey = { revokedBy: by, plan, ...key, revokedAtSeconds }
          const secrets = listSecrets(key, 0)
          const ends = await keysOfSecrets(secrets)
          const keys = [...list.keysOf(id), names.feed, ...ends]
          const listedUntil = revokedAtSeconds + endedSeconds
          const values = [
            ...[id, stateOf(key), JSON.stringify(record), REMEMBERED_SECONDS],
            ...[Math.max(1, listedUntil - nowSeconds()), listedUntil],
            ...(await endedReferences(record, secrets)),
          ]
          const done = await writeFacts(redis, factsOf(ends, key), now, (control) =>
            list.run(END_API_KEY_SCRIPT, keys, values, control),
          )
          return done === 1 ? true : undefined
        },
        // The call that ended it may have failed afterwards.
        ({ revokedAtSeconds }) => revokedAtSeconds !== undefined && list.keptSeconds > 0,
      )
      // The first sending may have ended it, and its reply was lost.
      return ended === true || wasActive
    },
  }
}
