import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { credentialHash } from '../../../src/access/tokens/reference.ts'
import { Denied, Unavailable } from '../../../src/errors.ts'
import type { NewClient } from '../../../src/features/authorization-server/client.ts'
import { isClientSecret } from '../../../src/features/authorization-server/client-secret.ts'
import { createClientRegistry } from '../../../src/features/authorization-server/redis/clients.ts'
import { configuredClients } from '../../../src/features/authorization-server/schemas/client.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'

const PUBLIC_URL = 'https://gateway.test'
const described: NewClient = { name: 'shop', grants: ['client_credentials'] }

/** The same registry, over both kinds of Redis. */
describe.each(['auto', 'embedded'] as const)('clients in Redis (%s)', (prefer) => {
  let redis: TestRedis
  let nowMs = 1_800_000_000_000
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())
  beforeEach(async () => {
    nowMs = 1_800_000_000_000
    await redis.direct.flushall()
  })

  function registry(configured: unknown[] = []) {
    const rest = createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 20_000 })
    const now = () => nowMs
    const parsed = configuredClients.parse(configured)
    return createClientRegistry({ redis: rest, configured: parsed, publicUrl: PUBLIC_URL, now })
  }

  test('a client is found as it was created, by another isolate too', async () => {
    const { client, secret } = await registry().create({ ...described, scopes: ['orders:read'] })
    expect(client).toMatchObject({ audiences: [PUBLIC_URL], tokenFormat: 'jwt', disabled: false })
    expect(await registry().find(client.id)).toEqual(client)
    expect(await isClientSecret(client, secret ?? '', nowMs)).toBe(true)
    expect(await isClientSecret(client, `${secret}x`, nowMs)).toBe(false)
    expect(await registry().find(crypto.randomUUID())).toBeUndefined()
    expect(await registry().find('x')).toBeUndefined()
  })

  test('no content of Redis authenticates a client [S40]', async () => {
    const { client, secret } = await registry().create(described)
    const rotated = await registry().rotateSecret(client.id, 60)
    const stored = await redis.direct.get(`pc:client:${client.id}`)
    for (const text of [secret, rotated]) {
      expect(text).toMatch(/^pcs_[\w-]{43}$/)
      expect(stored).not.toContain(text)
      expect(stored).toContain(await credentialHash(text ?? ''))
    }
  })

  test('a rotated secret is refused at once, or after its grace period', async () => {
    const { client, secret = '' } = await registry().create(described)
    const second = (await registry().rotateSecret(client.id, 60)) ?? ''
    let now = await registry().find(client.id)
    expect(await isClientSecret(now, secret, nowMs)).toBe(true)
    expect(await isClientSecret(now, secret, nowMs + 60_000)).toBe(false)
    expect(await isClientSecret(now, second, nowMs + 60_000)).toBe(true)
    const third = (await registry().rotateSecret(client.id, 0)) ?? ''
    now = await registry().find(client.id)
    expect(await isClientSecret(now, secret, nowMs)).toBe(false)
    expect(await isClientSecret(now, second, nowMs)).toBe(false)
    expect(await isClientSecret(now, third, nowMs)).toBe(true)
  })

  test('a second rotation never extends the grace period of an old secret', async () => {
    const { client, secret = '' } = await registry().create(described)
    await registry().rotateSecret(client.id, 10)
    await registry().rotateSecret(client.id, 1_000)
    const now = await registry().find(client.id)
    expect(await isClientSecret(now, secret, nowMs + 10_000)).toBe(false)
  })

  test('a disabled client is refused with every secret, and a concurrent rotation does not enable it', async () => {
    const { client, secret = '' } = await registry().create(described)
    const [, disabled] = await Promise.all([
      registry().rotateSecret(client.id, 60),
      registry().disable(client.id),
    ])
    expect(disabled).toBe(true)
    const now = await registry().find(client.id)
    expect(now?.disabled).toBe(true)
    expect(await isClientSecret(now, secret, nowMs)).toBe(false)
    expect(await registry().disable(crypto.randomUUID())).toBe(false)
  })

  test('the list is paged, newest first, with configured clients at the end', async () => {
    const configured = [crypto.randomUUID(), crypto.randomUUID()].map((id) => ({
      id,
      grants: ['client_credentials'],
      secretSha256: Buffer.alloc(32, id).toString('base64url'),
    }))
    const clients = registry(configured)
    const ids: string[] = []
    for (let count = 0; count < 5; count++) ids.unshift((await clients.create(described)).client.id)
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await clients.list({ limit: 2, cursor })
      expect(page.clients.length).toBeLessThanOrEqual(2)
      seen.push(...page.clients.map(({ id }) => id))
      cursor = page.cursor
    } while (cursor !== undefined)
    expect(seen).toEqual([...ids, ...configured.map(({ id }) => id)])
    await expect(clients.list({ limit: 2, cursor: '[x' })).rejects.toBeInstanceOf(Denied)
  })

  test('a configured client cannot be changed', async () => {
    const id = crypto.randomUUID()
    const secretSha256 = await credentialHash('a secret of the test')
    const clients = registry([{ id, grants: ['client_credentials'], secretSha256 }])
    const client = await clients.find(id)
    expect(client).toMatchObject({ configured: true, name: id, roles: [] })
    expect(await isClientSecret(client, 'a secret of the test', nowMs)).toBe(true)
    expect(await clients.disable(id)).toBe(false)
    expect(await clients.rotateSecret(id, 0)).toBeUndefined()
  })

  test('an unreadable record is an outage, not an unknown client [R06]', async () => {
    const { client } = await registry().create(described)
    for (const value of ['{', '{}', 'null', JSON.stringify({ ...client, extra: 1 })]) {
      await redis.direct.set(`pc:client:${client.id}`, value)
      await expect(registry().find(client.id)).rejects.toBeInstanceOf(Unavailable)
    }
    await redis.direct.del(`pc:client:${client.id}`)
    await redis.direct.lpush(`pc:client:${client.id}`, 'x')
    await expect(registry().find(client.id)).rejects.toBeInstanceOf(Unavailable)
  })
})
