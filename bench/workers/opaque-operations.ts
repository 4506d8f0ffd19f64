/** Issues and verifies opaque tokens, with records in memory and with records in Redis. */

import { createReferenceStore } from '../../src/access/tokens/redis/references.ts'
import {
  credentialHash,
  failedCheckOf,
  parseStoredReference,
  principalOfRecord,
  type ReferenceRecord,
  type ReferenceStore,
  storedReference,
} from '../../src/access/tokens/reference.ts'
import { createReferences } from '../../src/access/tokens/references.ts'
import { createTokenIssuer, randomSeed, seededIds } from '../../src/access/tokens/token-issuer.ts'
import type { Principal } from '../../src/index.ts'
import { type Config, createRedisRest } from '../../src/parts.ts'
import { grantFor, subjectOf, TTL_SECONDS, tokensOf } from './grant.ts'
import type { Operations } from './operations.ts'

const OPAQUE = { format: 'opaque' } as const

export async function opaqueOperations({ publicUrl, redis }: Config): Promise<Operations> {
  const inRedis = createReferenceStore(createRedisRest(redis))
  const atHand = storeAtHand()
  const issuerOver = (references: ReferenceStore) =>
    createTokenIssuer({ keys: [], issuer: publicUrl, references, defaultTtlSeconds: TTL_SECONDS })
  const storing = issuerOver(inRedis)
  // Does not keep the records: a batch would fill the isolate's memory.
  const forgetting = issuerOver({
    ...atHand,
    put: async (_hash, record) => void (await storedReference(record)),
  })
  const grant = grantFor(publicUrl)
  const tokens = await tokensOf(issuerOver(atHand), grant, OPAQUE)
  const tokensInRedis = await tokensOf(storing, grant, OPAQUE)
  const known = createReferences({ audience: publicUrl })

  async function resolve(token: string, store: ReferenceStore): Promise<Principal> {
    const record = await store.find(await credentialHash(token))
    return principalOf(record, publicUrl)
  }
  return {
    uuid: () => seededIds(randomSeed()).opaqueToken,
    'issue-opaque': async () => (await forgetting.issue(grant, OPAQUE)).token,
    'issue-opaque-redis': async () => (await storing.issue(grant, OPAQUE)).token,
    'verify-opaque': async (index) => subjectOf(await resolve(tokens(index), atHand)),
    'verify-opaque-redis': async (index) => subjectOf(await resolve(tokensInRedis(index), inRedis)),
    'recall-opaque': async (index) => {
      const token = tokens(index)
      const principal = known.recall(token)
      if (principal !== undefined) return subjectOf(principal)
      known.remember(token, await resolve(token, atHand))
      return subjectOf(known.recall(token))
    },
  }
}

/** Creates a store in memory, with records in the same form as in Redis. */
function storeAtHand(): ReferenceStore {
  const texts = new Map<string, string>()
  return {
    put: async (hash, record) => void texts.set(hash, await storedReference(record)),
    async find(hash) {
      const text = texts.get(hash)
      return text === undefined ? undefined : parseStoredReference(text)
    },
    remove: async (hash) => void texts.delete(hash),
  }
}

function principalOf(record: ReferenceRecord | undefined, audience: string): Promise<Principal> {
  if (record === undefined) throw new Error('missing record')
  const failed = failedCheckOf(record, { audience, nowMs: Date.now() })
  if (failed !== undefined) throw new Error(failed)
  return principalOfRecord(record)
}
