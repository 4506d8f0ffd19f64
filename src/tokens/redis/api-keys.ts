/** API keys in Redis: the reference that `admit` reads, and the record that operators see. */
import { v4, v7 } from 'uuid'
import { Unavailable } from '../../errors.ts'
import { tokenIdHash } from '../../identity/token-id.ts'
import { API_KEY_RECORDS, FEED_KEY } from '../../redis/keys.ts'
import { createRecordList, NEVER_ENDS } from '../../redis/record-list.ts'
import type { RedisRest } from '../../redis/rest.ts'
import { revokedTokenKey } from '../../revocation/revocation.ts'
import { type ApiKey, type ApiKeys, apiKeySchema, newApiKey } from '../api-key.ts'
import {
  credentialHash,
  REFERENCE_TOLERANCE_SECONDS,
  type ReferenceRecord,
  referenceKey,
  storedReference,
} from '../reference.ts'
import { END_API_KEY_SCRIPT, WRITE_API_KEY_SCRIPT } from './scripts.generated.ts'

export interface ApiKeysOptions {
  readonly rest: RedisRest
  /** The gateway: the issuer and the audience of the keys. */
  readonly publicUrl: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** An isolate caches a key for at most 5 minutes after the last read. This is slightly more. */
const REMEMBERED_SECONDS = 310
/** If other requests change the same key at the same time. */
const MAX_ATTEMPTS = 5

/** Creates the adapter. Each change is atomic: the key is stored, listed and valid, or none. */
export function createApiKeys({ rest, publicUrl, now }: ApiKeysOptions): ApiKeys {
  const list = createRecordList({ rest, ...API_KEY_RECORDS, schema: apiKeySchema, now })
  const nowSeconds = () => Math.floor(now() / 1000)

  /** Replaces `old` with `key` and a new secret. Returns undefined if `old` has changed. */
  async function write(key: Omit<ApiKey, 'hash' | 'tokenId'>, old?: ApiKey) {
    const secret = newApiKey()
    const issued: ApiKey = { ...key, tokenId: v4(), hash: await credentialHash(secret) }
    const { record, index, ends } = list.keysOf(key.id)
    const end = key.expiresAtSeconds
    // At least one second, also for a key that is about to expire: 0 would mean no expiry.
    const life = end === null ? 0 : Math.max(1, end - nowSeconds() + REFERENCE_TOLERANCE_SECONDS)
    const keys = [record, index, ends, referenceKey(issued.hash)]
    if (old !== undefined) keys.push(...(await keysOfCredential(old)))
    const done = await list.run(WRITE_API_KEY_SCRIPT, keys, [
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
        return (await list.run(END_API_KEY_SCRIPT, keys, values)) === 1 ? true : undefined
      })
      return ended === true
    },
  }
}
