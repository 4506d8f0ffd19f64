import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createReferenceStore } from '../../../../src/access/tokens/redis/references.ts'
import {
  credentialHash,
  type ReferenceRecord,
  type ReferenceStore,
} from '../../../../src/access/tokens/reference.ts'
import { Unavailable } from '../../../../src/errors.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { ALL_REDIS_PROTOCOLS } from '../../../harness/redis-protocols.ts'
import { answering } from '../../../redis/answers.ts'

const NOW_MS = 1_800_000_000_500
const record: ReferenceRecord = {
  kind: 'opaque',
  tokenId: '0b5ff0a5-7a53-4f0c-8d6e-3f7a2f0f3c51',
  tokenIssuer: 'https://gateway.test',
  issuer: 'https://idp.test/',
  subject: 'alice:*{}\u2028"',
  client: 'app',
  tenant: 'acme',
  roles: [],
  scopes: ['orders:read'],
  audiences: ['https://gateway.test'],
  issuedAtSeconds: 1_800_000_000,
  expiresAtSeconds: 1_800_000_900,
}

describe.each(ALL_REDIS_PROTOCOLS)('records of references ($name)', ({ prefer, connect }) => {
  let redis: TestRedis
  let store: ReferenceStore
  let hash: string
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
    const rest = connect(redis)
    store = createReferenceStore(rest, () => NOW_MS)
  })
  beforeEach(async () => {
    await redis.direct.flushall()
    hash = await credentialHash(crypto.randomUUID())
  })
  afterAll(() => redis.close())

  test('are found unchanged by every isolate until they are removed', async () => {
    expect(await store.find(hash)).toBeUndefined()
    await store.put(hash, record)
    const other = createReferenceStore(connect(redis))
    expect(await other.find(hash)).toEqual(record)
    await other.remove(hash)
    expect(await store.find(hash)).toBeUndefined()
    await store.remove(hash)
  })

  test('expire 5 s after the token [S34]', async () => {
    await store.put(hash, record)
    expect(await redis.direct.ttl(DEFAULT_KEYS.reference + hash)).toBeGreaterThan(899)
    expect(await redis.direct.pttl(DEFAULT_KEYS.reference + hash)).toBeLessThanOrEqual(905_000)
    await store.put(hash, { ...record, expiresAtSeconds: 1_700_000_000 })
    expect(await redis.direct.ttl(DEFAULT_KEYS.reference + hash)).toBeLessThanOrEqual(1)
  })

  test('do not expire for an API key without an expiry', async () => {
    const { confirmation: _, ...apiKey } = { ...record, kind: 'api_key', expiresAtSeconds: null }
    await store.put(hash, apiKey as ReferenceRecord)
    expect(await redis.direct.ttl(DEFAULT_KEYS.reference + hash)).toBe(-1)
    expect(await store.find(hash)).toEqual(apiKey)
  })

  test('of a wrong type are an outage, never "unknown" [R12]', async () => {
    await redis.direct.lpush(DEFAULT_KEYS.reference + hash, 'x')
    await expect(store.find(hash)).rejects.toBeInstanceOf(Unavailable)
  })

  test.each(['', 'null', '{}', '[]', 'nonsense', '{"record":{},"parts":{}}', '"text"'])(
    'with unreadable content (%j) are an outage, never "unknown" [R06]',
    async (text) => {
      await redis.direct.set(DEFAULT_KEYS.reference + hash, text)
      await expect(store.find(hash)).rejects.toBeInstanceOf(Unavailable)
    },
  )
})

describe('a faulty Redis endpoint', () => {
  let close: () => Promise<void>
  afterEach(() => close())

  test.each([
    ['put', '[{"result":null}]'],
    ['put', '[{"result":1}]'],
    ['put', '[{"error":"OOM command not allowed"}]'],
    ['put', '[]'],
    ['find', '[{"result":7}]'],
    ['find', '[{"result":{}}]'],
    ['find', '[{"error":"LOADING"}]'],
    ['find', '[{}]'],
    ['find', undefined],
    ['remove', '[{"result":"OK"}]'],
    ['remove', '[{"result":null}]'],
    ['remove', '[{"error":"READONLY"}]'],
  ] as const)('%s with the reply %j is an outage [R06]', async (method, body) => {
    const endpoint = await answering(body)
    close = endpoint.close
    const store = createReferenceStore(endpoint.rest)
    await expect(store[method]('hash', record)).rejects.toBeInstanceOf(Unavailable)
    expect(endpoint.calls()).toBeGreaterThan(0)
  })
})
