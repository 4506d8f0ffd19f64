/** API keys in Redis: the reference that `admit` reads, and the record that operators see. */
import { v4, v7 } from 'uuid'
import { Denied, Unavailable } from '../../errors.ts'
import { tokenIdHash } from '../../identity/token-id.ts'
import type { RedisConnection } from '../../redis/connection.ts'
import { recordKeys } from '../../redis/keys.ts'
import { createRecordList, NEVER_ENDS } from '../../redis/record-list.ts'
import { listOf, recordIn, resultOf, secondsOf, sendCommand, textOf } from '../../redis/reply.ts'
import { revokedTokenKey } from '../../revocation/revocation.ts'
import { newApiKey, shownPrefixOf } from '../api-key.ts'
import {
  type ApiKey,
  type ApiKeys,
  apiKeySchema,
  type ListedApiKey,
  type OldSecret,
} from '../api-key-record.ts'
import {
  credentialHash,
  parseStoredReference,
  REFERENCE_TOLERANCE_SECONDS,
  type ReferenceRecord,
  storedReference,
} from '../reference.ts'
import { END_API_KEY_SCRIPT, WRITE_API_KEY_SCRIPT } from './scripts.generated.ts'

export interface ApiKeysOptions {
  readonly redis: RedisConnection
  /** The gateway: the issuer and the audience of the keys. */
  readonly publicUrl: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** An isolate caches a key for at most 5 minutes after the last read. This is slightly more. */
const REMEMBERED_SECONDS = 310
/** If other requests change the same key at the same time. */
const MAX_ATTEMPTS = 5
/** A rotation with a grace period ends older ones. */
const MAX_OLD_SECRETS = 8

/** The id of no key. */
const NO_KEY = '00000000-0000-0000-0000-000000000000'

type Secrets = readonly OldSecret[]

/** Returns the text that each change of a record changes. The scripts compare it. */
const stateOf = ({ tokenId, revision = 0 }: ApiKey): string => `${tokenId} ${revision}`

/** Creates the adapter. Each change is atomic: the key is stored, listed and valid, or none. */
export function createApiKeys({ redis, publicUrl, now }: ApiKeysOptions): ApiKeys {
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
    const keys = [...list.keysOf(key.id), names.reference + key.hash, names.feed]
    const end = key.expiresAtSeconds
    const values = [
      key.id,
      JSON.stringify(stored),
      await storedReference(referenceOf(key)),
      lifeUntil(end),
      end ?? NEVER_ENDS,
      old === undefined ? '' : stateOf(old),
      revokedSeconds(key),
      kept.length,
    ]
    for (const one of kept) {
      keys.push(names.reference + one.hash)
      const { tokenId, issuedAtSeconds, untilSeconds } = one
      const present = { tokenId, rotatedAtSeconds: issuedAtSeconds, expiresAtSeconds: untilSeconds }
      const reference = referenceOf({ ...key, ...present })
      values.push(await storedReference(reference), lifeUntil(untilSeconds))
    }
    keys.push(...(await keysOfSecrets(ended)))
    const done = await list.run(WRITE_API_KEY_SCRIPT, keys, values)
    return done === 1 ? stored : undefined
  }

  async function newSecret() {
    const secret = newApiKey()
    const hash = await credentialHash(secret)
    return { secret, members: { tokenId: v4(), hash, prefix: shownPrefixOf(secret) } }
  }

  /** Adds the times of the last use. */
  async function withUses(keys: readonly ApiKey[]): Promise<ListedApiKey[]> {
    if (keys.length === 0) return []
    const command = ['MGET', ...keys.map(({ id }) => names.apiKeyUse + id)]
    const uses = listOf(await sendCommand(redis, command), keys.length)
    return keys.map((key, index) => ({ ...key, lastUsedAtSeconds: useOf(uses[index]) }))
  }

  const useOf = (use: unknown) => (use == null ? null : secondsOf(textOf(use)))

  /** Returns 0 for no end. At least one second for a key that is about to expire. */
  function lifeUntil(end: number | null): number {
    return end === null ? 0 : Math.max(1, end - nowSeconds() + REFERENCE_TOLERANCE_SECONDS)
  }

  function referenceOf(key: Omit<ApiKey, 'oldSecrets'>): ReferenceRecord {
    return {
      kind: 'api_key',
      key: key.id,
      tokenId: key.tokenId,
      tokenIssuer: publicUrl,
      issuer: publicUrl,
      subject: key.subject,
      ...(key.tenant !== null && { tenant: key.tenant }),
      roles: key.roles,
      scopes: key.scopes,
      audiences: [publicUrl],
      issuedAtSeconds: key.rotatedAtSeconds,
      expiresAtSeconds: key.expiresAtSeconds,
    }
  }

  /** Returns two keys for each secret: its reference and its revocation. */
  async function keysOfSecrets(secrets: Secrets): Promise<string[]> {
    const pairs = secrets.map(async ({ hash, tokenId }) => [
      names.reference + hash,
      revokedTokenKey(names, await tokenIdHash(publicUrl, tokenId)),
    ])
    return (await Promise.all(pairs)).flat()
  }

  /** Returns all secrets of a key, the newest first, with their ends after a grace period. */
  function secretsOf(key: ApiKey, graceSeconds: number): Secrets {
    const { tokenId, hash, rotatedAtSeconds: issuedAtSeconds, oldSecrets = [] } = key
    const endSeconds = key.expiresAtSeconds ?? Number.POSITIVE_INFINITY
    const present = { tokenId, hash, issuedAtSeconds, untilSeconds: endSeconds }
    const graceEndSeconds = nowSeconds() + graceSeconds
    return [present, ...oldSecrets].map((one) => ({
      ...one,
      untilSeconds: Math.min(one.untilSeconds, graceEndSeconds),
    }))
  }

  function revokedSeconds({ expiresAtSeconds }: Pick<ApiKey, 'expiresAtSeconds'>): number {
    const left = (expiresAtSeconds ?? Infinity) - nowSeconds() + REFERENCE_TOLERANCE_SECONDS
    return Math.max(1, Math.min(REMEMBERED_SECONDS, left))
  }

  /** Repeats `change` until no other request changes the key in the meantime. */
  async function changed<Result>(
    id: string,
    change: (key: ApiKey) => Promise<Result | undefined>,
  ): Promise<Result | undefined> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const key = await list.find(id)
      if (key === undefined) return undefined
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
    const [text, use] = listOf(replies.map(resultOf), 2)
    if (text === null) return undefined
    return { ...recordIn(text, apiKeySchema), lastUsedAtSeconds: useOf(use) }
  }

  return {
    async list(page, { tenant, subject, hidesOthers } = {}) {
      const isListed = (key: ApiKey) =>
        (tenant === undefined || key.tenant === tenant) &&
        (subject === undefined || key.subject === subject)
      const isFiltered = tenant !== undefined || subject !== undefined
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
      const key = await find(record?.key ?? NO_KEY)
      return key && { key, isPresent: key.hash === hash }
    },

    async create(described, createdBy, issuedAtSeconds) {
      const { name, subject, roles, scopes, tenant, expiresInSeconds, metadata } = described
      const createdAtSeconds = nowSeconds()
      const { secret, members } = await newSecret()
      const key = await write({
        ...members,
        id: v7(),
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
        const secrets = secretsOf(old, graceSeconds)
        const kept = secrets
          .filter(({ untilSeconds }) => untilSeconds > nowSeconds())
          .slice(0, MAX_OLD_SECRETS)
        const ended = secrets.filter((one) => !kept.includes(one))
        const { secret, members } = await newSecret()
        const rotatedAtSeconds = issuedAtSeconds ?? nowSeconds()
        const key = await write({ ...old, ...members, rotatedAtSeconds }, { old, ended, kept })
        return key && { key, secret }
      }),

    async end(id) {
      const ended = await changed(id, async (key) => {
        const secrets = await keysOfSecrets(secretsOf(key, 0))
        const keys = [...list.keysOf(id), names.feed, names.apiKeyUse + id, ...secrets]
        const values = [id, stateOf(key), revokedSeconds(key)]
        return (await list.run(END_API_KEY_SCRIPT, keys, values)) === 1 ? true : undefined
      })
      return ended === true
    },
  }
}
