/** API keys in Redis: the reference that `admit` reads, and the record that operators see. */
import { v4, v7 } from 'uuid'
import { revokedTokenKey } from '../../admission/revocation.ts'
import { storedReference } from '../../admission/stored-reference.ts'
import { Unavailable } from '../../errors.ts'
import { type ApiKey, type ApiKeys, apiKeySchema } from '../../operators/api-key.ts'
import { newApiKey } from '../../tokens/api-key.ts'
import { credentialHash, type ReferenceRecord, referenceKey } from '../../tokens/reference.ts'
import { REFERENCE_TOLERANCE_SECONDS } from '../../tokens/reference-principal.ts'
import { tokenIdHash } from '../../tokens/token-id.ts'
import { createRecordList, NEVER_ENDS } from './record-list.ts'
import type { RedisRest } from './rest.ts'
import { FEED_KEY, FEED_TELL } from './revocation-feed.ts'

export interface ApiKeysOptions {
  readonly rest: RedisRest
  /** The gateway: who vouches for the keys, and whom they are for. */
  readonly publicUrl: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

const INDEX_KEY = 'pc:api-keys'
/** Ids of API keys by the second they end; infinite for those that do not. */
export const API_KEY_ENDS_KEY = `${INDEX_KEY}:ends`
/** An isolate knows a key for at most 5 minutes after it was last read; a little more. */
const REMEMBERED_SECONDS = 310
/** Whoever changes the same key at the same time this often should not. */
const MAX_ATTEMPTS = 5

/** The token id of a record's present key; nothing where there is no record. */
const PRESENT = `
local function present(record)
  local text = redis.call('GET', record)
  return text and cjson.decode(text).tokenId or ''
end
`

/**
 * KEYS: record, index, ends, new reference, then for a key that is replaced its reference, its
 * revocation and the feed. ARGV: id, record, reference, life in seconds or 0, end, the token id that
 * is replaced or nothing, and how long the old token id stays revoked. 0: the record is another by
 * now.
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

/** KEYS: record, index, ends, reference, revocation, feed. ARGV: id, the token id, revoked for. */
const END_SCRIPT = `${FEED_TELL}${PRESENT}
if present(KEYS[1]) ~= ARGV[2] then return 0 end
feed_tell(KEYS[6], { KEYS[5] })
redis.call('SET', KEYS[5], '1', 'EX', ARGV[3])
redis.call('DEL', KEYS[4], KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
`

/** Makes the adapter. Every call is one step: a key is there, listed and good, or none of it. */
export function createApiKeys({ rest, publicUrl, now }: ApiKeysOptions): ApiKeys {
  const list = createRecordList({
    rest,
    prefix: 'pc:api-key:',
    index: INDEX_KEY,
    schema: apiKeySchema,
    now,
  })
  const nowSeconds = () => Math.floor(now() / 1000)

  /** Stores `key` with a new secret in the place of `old`. Undefined: `old` is another by now. */
  async function write(key: Omit<ApiKey, 'hash' | 'tokenId'>, old?: ApiKey) {
    const secret = newApiKey()
    const issued: ApiKey = { ...key, tokenId: v4(), hash: await credentialHash(secret) }
    const { record, index, ends } = list.keysOf(key.id)
    const end = key.expiresAtSeconds
    // Of a key in its last moment as well: 0 would be for ever.
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

  /** Where the present secret of a key is, where it is revoked, and whom that is told. */
  async function keysOfCredential({ hash, tokenId }: ApiKey): Promise<string[]> {
    const revoked = revokedTokenKey(await tokenIdHash(publicUrl, tokenId))
    return [referenceKey(hash), revoked, FEED_KEY]
  }

  function revokedSeconds({ expiresAtSeconds }: Pick<ApiKey, 'expiresAtSeconds'>): number {
    const left = (expiresAtSeconds ?? Infinity) - nowSeconds() + REFERENCE_TOLERANCE_SECONDS
    return Math.max(1, Math.min(REMEMBERED_SECONDS, left))
  }

  /** Tries `change` until nobody else changed the key in between. */
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
      // Nobody else has this id.
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
