/** API keys in Redis: the reference that `admit` reads, and the record that operators see. */
import { v4, v7 } from 'uuid'
import { Unavailable } from '../../errors.ts'
import { tokenIdHash } from '../../identity/token-id.ts'
import { API_KEYS_INDEX } from '../../redis/keys.ts'
import { createRecordList, NEVER_ENDS } from '../../redis/record-list.ts'
import type { RedisRest } from '../../redis/rest.ts'
import { FEED_KEY, FEED_TELL } from '../../revocation/redis/feed.ts'
import { revokedTokenKey } from '../../revocation/revocation.ts'
import { type ApiKey, type ApiKeys, apiKeySchema, newApiKey } from '../api-key.ts'
import {
  credentialHash,
  REFERENCE_TOLERANCE_SECONDS,
  type ReferenceRecord,
  referenceKey,
  storedReference,
} from '../reference.ts'

export interface ApiKeysOptions {
  readonly rest: RedisRest
  /** The gateway: the issuer and the audience of the keys. */
  readonly publicUrl: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** An isolate caches a key for at most 5 minutes after the last read. This is slightly more. */
const REMEMBERED_SECONDS = 310
/** The number of attempts if other requests change the same key at the same time. */
const MAX_ATTEMPTS = 5

/**
 * `present(record)`: returns the token id of a record's present key, or an empty string if there is
 * no record.
 */
const PRESENT = `
local function present(record)
  local text = redis.call('GET', record)
  return text and cjson.decode(text).tokenId or ''
end
`

/**
 * KEYS: record, index, ends, new reference. To replace a key, also its reference, its revocation
 * and the feed. ARGV: id, record, reference, life in seconds or 0, expiry; the token id to replace
 * or an empty string; how long the old token id stays revoked, in seconds. Returns 0 if the record
 * has changed in the meantime.
 */
const WRITE_SCRIPT = `${FEED_TELL}${PRESENT}
local life = tonumber(ARGV[4])
if present(KEYS[1]) ~= ARGV[6] then return 0 end
local function put(key, value)
  if life > 0 then redis.call('SET', key, value, 'EX', life) else redis.call('SET', key, value) end
end
if KEYS[5] then
  feed_tell(KEYS[7], { KEYS[6] })
  redis.call('SET', KEYS[6], '1', 'EX', ARGV[7])
  redis.call('DEL', KEYS[5])
end
put(KEYS[4], ARGV[3])
put(KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
return 1
`

/**
 * KEYS: record, index, ends, reference, revocation, feed. ARGV: id, token id, how long the token id
 * stays revoked, in seconds. Returns 0 if the record has changed in the meantime.
 */
const END_SCRIPT = `${FEED_TELL}${PRESENT}
if present(KEYS[1]) ~= ARGV[2] then return 0 end
feed_tell(KEYS[6], { KEYS[5] })
redis.call('SET', KEYS[5], '1', 'EX', ARGV[3])
redis.call('DEL', KEYS[4], KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
`

/**
 * Creates the adapter. Each change is atomic: the key is stored, listed and valid, or none of
 * these.
 */
export function createApiKeys({ rest, publicUrl, now }: ApiKeysOptions): ApiKeys {
  const list = createRecordList({
    rest,
    prefix: 'pc:api-key:',
    index: API_KEYS_INDEX,
    schema: apiKeySchema,
    now,
  })
  const nowSeconds = () => Math.floor(now() / 1000)

  /**
   * Stores `key` with a new secret and replaces `old`. Returns undefined if `old` has changed in
   * the meantime.
   */
  async function write(key: Omit<ApiKey, 'hash' | 'tokenId'>, old?: ApiKey) {
    const secret = newApiKey()
    const issued: ApiKey = { ...key, tokenId: v4(), hash: await credentialHash(secret) }
    const { record, index, ends } = list.keysOf(key.id)
    const end = key.expiresAtSeconds
    // At least one second, also for a key that is about to expire: 0 would mean no expiry.
    const life = end === null ? 0 : Math.max(1, end - nowSeconds() + REFERENCE_TOLERANCE_SECONDS)
    const keys = [record, index, ends, referenceKey(issued.hash)]
    if (old !== undefined) keys.push(...(await keysOfCredential(old)))
    const done = await list.run(WRITE_SCRIPT, keys, [
      key.id,
      JSON.stringify(issued),
      await storedReference(referenceOf(issued)),
      life,
      end ?? NEVER_ENDS,
      old?.tokenId ?? '',
      revokedSeconds(key),
    ])
    return done === 1 ? { key: issued, secret } : undefined
  }

  function referenceOf(key: ApiKey): ReferenceRecord {
    return {
      kind: 'api_key',
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

  /** Returns the keys of the present secret: its reference, its revocation and the feed. */
  async function keysOfCredential({ hash, tokenId }: ApiKey): Promise<string[]> {
    const revoked = revokedTokenKey(await tokenIdHash(publicUrl, tokenId))
    return [referenceKey(hash), revoked, FEED_KEY]
  }

  function revokedSeconds({ expiresAtSeconds }: Pick<ApiKey, 'expiresAtSeconds'>): number {
    const left = (expiresAtSeconds ?? Infinity) - nowSeconds() + REFERENCE_TOLERANCE_SECONDS
    return Math.max(1, Math.min(REMEMBERED_SECONDS, left))
  }

  /**
   * Repeats `change` until no other request changes the key in the meantime. Returns undefined if
   * the key does not exist. Throws `Unavailable` after 5 attempts.
   */
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
    throw new Unavailable('redis', 'refused')
  }

  return {
    list: (page) => list.list(page),
    find: (id) => list.find(id),

    async create(described, createdBy, issuedAtSeconds) {
      const { name, subject, roles, scopes, tenant, expiresInSeconds } = described
      const createdAtSeconds = nowSeconds()
      const issued = await write({
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
      })
      // The id is new, so no other request can have changed its record.
      if (issued === undefined) throw new Unavailable('redis', 'malformed')
      return issued
    },

    rotate: (id, issuedAtSeconds) =>
      changed(id, (old) =>
        write({ ...old, rotatedAtSeconds: issuedAtSeconds ?? nowSeconds() }, old),
      ),

    async end(id) {
      const ended = await changed(id, async (key) => {
        const { record, index, ends } = list.keysOf(id)
        const keys = [record, index, ends, ...(await keysOfCredential(key))]
        const values = [id, key.tokenId, revokedSeconds(key)]
        return (await list.run(END_SCRIPT, keys, values)) === 1 ? true : undefined
      })
      return ended === true
    },
  }
}
