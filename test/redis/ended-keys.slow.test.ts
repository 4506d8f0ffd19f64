/** API keys that have ended: they stay listed, no isolate accepts them, and their caller stays identified. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AdmissionVerdict, createAdmission } from '../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../src/access/admission/redis/store.ts'
import { type ApiKeyStatus, statusOf } from '../../src/access/tokens/api-key-record.ts'
import { createApiKeys } from '../../src/access/tokens/redis/api-keys.ts'
import { createReferenceStore } from '../../src/access/tokens/redis/references.ts'
import { checkRecord, credentialHash } from '../../src/access/tokens/reference.ts'
import { createReferences } from '../../src/access/tokens/references.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { seeded } from '../audit/tampering.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { ALL_REDIS_PROTOCOLS } from '../harness/redis-protocols.ts'

const PUBLIC_URL = 'https://gateway.test'
const ADDRESS = '192.0.2.7'
const RETENTION_SECONDS = 100 * 86_400
const TOLERANCE_SECONDS = 5

describe.each(ALL_REDIS_PROTOCOLS)('ended API keys ($name)', ({ prefer, connect }) => {
  let redis: TestRedis
  let rest: RedisConnection
  let nowMs = Date.now()
  const now = () => nowMs
  const nowSeconds = () => Math.floor(nowMs / 1000)
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
    rest = connect(redis)
  })
  afterAll(() => redis.close())

  const newKeys = () =>
    createApiKeys({ redis: rest, publicUrl: PUBLIC_URL, now, endedSeconds: RETENTION_SECONDS })

  /** Lets time pass for the clock of the gateways, and for the lives of all keys in Redis. */
  async function pass(seconds: number): Promise<void> {
    nowMs += seconds * 1000
    for (const key of await redis.direct.keys('*')) {
      const left = await redis.direct.pttl(key)
      if (left < 0) continue
      if (left <= seconds * 1000) await redis.direct.del(key)
      else await redis.direct.pexpire(key, left - seconds * 1000)
    }
  }

  function isolate() {
    const references = createReferences({ audience: PUBLIC_URL, now })
    const store = createRedisAdmissionStore(rest)
    const admission = createAdmission({ store, references, now })
    return async function present(text: string): Promise<AdmissionVerdict & { by?: string }> {
      const call = { proof: undefined, address: ADDRESS, limits: [] }
      const cached = references.recall(text)
      if (cached !== undefined) {
        const verdict = await admission.admit({ ...call, principal: cached })
        return { ...verdict, ...(cached.key !== undefined && { by: cached.key }) }
      }
      const reference = { kind: 'api_key', hash: await credentialHash(text), text } as const
      const verdict = await admission.admitReference({ ...call, reference })
      const by = (verdict.principal ?? verdict.refused)?.key
      return { ...verdict, ...(by !== undefined && { by }) }
    }
  }

  const described = { name: 'k', subject: 's', tenant: 'acme' }

  test('a revoked key is refused by its record alone, and names its caller', async () => {
    const keys = newKeys()
    const { key, secret } = await keys.create(described, 'olga')
    const rotated = await keys.rotate(key.id, { graceSeconds: 3_600 })
    await keys.end(key.id, { by: 'olga', plan: 'pro' })
    for (const name of await redis.direct.keys(`${DEFAULT_KEYS.revokedToken}*`))
      await redis.direct.del(name)
    for (const text of [secret, rotated?.secret ?? '']) {
      const present = isolate()
      for (let time = 0; time < 2; time += 1)
        expect(await present(text)).toMatchObject({
          denial: { code: 'token_revoked', by: 'token' },
          principal: undefined,
          by: key.id,
        })
    }
    expect(await keys.find(key.id)).toMatchObject({
      revokedAtSeconds: nowSeconds(),
      revokedBy: 'olga',
      plan: 'pro',
    })
    expect([await keys.end(key.id), await keys.rotate(key.id)]).toEqual([false, undefined])
    expect(await keys.update(key.id, { expiresInSeconds: null })).toBeUndefined()
    expect(await keys.identify(secret)).toBeUndefined()
  })

  test('an expired key is refused as expired, names its caller, and does not live again', async () => {
    const keys = newKeys()
    const { key, secret } = await keys.create({ ...described, expiresInSeconds: 60 }, 'olga')
    await pass(60 + TOLERANCE_SECONDS + 1)
    expect(await isolate()(secret)).toMatchObject({
      denial: { code: 'token_rejected', check: 'exp' },
      principal: undefined,
      by: key.id,
    })
    expect(await keys.update(key.id, { expiresInSeconds: 3_600 })).toBeUndefined()
    expect(await keys.rotate(key.id)).toBeUndefined()
    expect(await keys.end(key.id)).toBe(false)
    expect(await isolate()(secret)).toMatchObject({ denial: { check: 'exp' } })
  })

  test('an unknown key has no caller', async () => {
    const { denial, by } = await isolate()(`pk_${'0'.repeat(49)}`)
    expect(denial).toMatchObject({ code: 'token_rejected', check: 'reference_unknown' })
    expect(by).toBeUndefined()
  })

  test('a revoked key is not valid for introspection', async () => {
    const keys = newKeys()
    const { key, secret } = await keys.create(described, 'olga')
    const references = createReferenceStore(rest, now)
    const use = { audience: PUBLIC_URL, nowMs }
    const checkOf = async () => {
      const record = await references.find(await credentialHash(secret))
      return record && checkRecord(record, use)
    }
    expect(await checkOf()).toBeUndefined()
    await keys.end(key.id)
    expect(await checkOf()).toBe('revoked')
  })

  test('ended keys vanish with their secrets at the end of the retention', async () => {
    const keys = newKeys()
    const one = await keys.create({ ...described, subject: 'gone' }, 'olga')
    const two = await keys.create({ ...described, subject: 'gone', expiresInSeconds: 60 }, 'olga')
    const listed = async () =>
      (await keys.list({ limit: 50 }, { subject: 'gone' })).items.map(({ id }) => id)
    await keys.end(one.key.id)
    await pass(RETENTION_SECONDS - 60)
    expect(await listed()).toEqual([two.key.id, one.key.id])
    await pass(60 + 2 * TOLERANCE_SECONDS)
    expect(await listed()).toEqual([two.key.id])
    await pass(60)
    expect(await listed()).toEqual([])
    for (const { key, secret } of [one, two])
      expect(
        await redis.direct.exists(
          `pc:api-key:${key.id}`,
          `pc:reference:${await credentialHash(secret)}`,
        ),
      ).toBe(0)
  })

  test('a record of an earlier version is valid and listed as it was', async () => {
    const keys = newKeys()
    const { key, secret } = await keys.create({ ...described, subject: 'old' }, 'olga')
    const { prefix: _, ...earlier } = key
    await redis.direct.set(`pc:api-key:${key.id}`, JSON.stringify(earlier))
    expect((await isolate()(secret)).denial).toBeUndefined()
    const [found] = (await keys.list({ limit: 50 }, { subject: 'old', status: 'active' })).items
    expect(found && statusOf(found, nowSeconds())).toBe('active')
  })

  interface Modeled {
    readonly id: string
    endSeconds: number
    isRevoked: boolean
    secrets: { readonly text: string; untilSeconds: number }[]
  }

  test.each([1, 2, 3])(
    'in any order of changes, no isolate accepts an ended secret, and every key is listed (seed %d)',
    async (seed) => {
      const random = seeded(20_261_127 + seed)
      const pick = <Item>(items: readonly Item[]) =>
        items[Math.floor(random() * items.length)] as Item
      const subject = crypto.randomUUID()
      const keys = newKeys()
      const isolates = [isolate(), isolate()]
      const model: Modeled[] = []
      const isEnded = (key: Modeled) => key.isRevoked || nowSeconds() >= key.endSeconds
      const isPastTolerance = (second: number) => nowSeconds() >= second + TOLERANCE_SECONDS

      const actions = {
        async create() {
          const expiresInSeconds = pick([undefined, 60, 400, 2_000])
          const life = expiresInSeconds === undefined ? {} : { expiresInSeconds }
          const { key, secret } = await keys.create({ ...described, subject, ...life }, 'olga')
          model.push({
            id: key.id,
            endSeconds: key.expiresAtSeconds ?? Number.POSITIVE_INFINITY,
            isRevoked: false,
            secrets: [{ text: secret, untilSeconds: Number.POSITIVE_INFINITY }],
          })
        },
        async rotate() {
          const key = pick(model)
          if (isEnded(key)) return
          const graceSeconds = pick([0, 300, 900])
          const rotated = await keys.rotate(key.id, { graceSeconds })
          const untilSeconds = nowSeconds() + graceSeconds
          for (const one of key.secrets) one.untilSeconds = Math.min(one.untilSeconds, untilSeconds)
          key.secrets.push({
            text: rotated?.secret ?? '',
            untilSeconds: Number.POSITIVE_INFINITY,
          })
        },
        async update() {
          const key = pick(model)
          const expiresInSeconds = pick([300, 900, null])
          const changed = await keys.update(key.id, { expiresInSeconds })
          if (key.isRevoked || isPastTolerance(key.endSeconds)) expect(changed).toBeUndefined()
          if (changed === undefined) return
          const endSeconds = changed.expiresAtSeconds ?? Number.POSITIVE_INFINITY
          for (const one of key.secrets)
            if (Number.isFinite(one.untilSeconds))
              one.untilSeconds = Math.min(one.untilSeconds, endSeconds)
          key.endSeconds = endSeconds
        },
        async revoke() {
          const key = pick(model)
          const wasEnded = key.isRevoked || isPastTolerance(key.endSeconds)
          expect(await keys.end(key.id)).toBe(!wasEnded)
          if (!wasEnded) key.isRevoked = true
        },
        pass: () => pass(pick([1, 30, 200, 320])),
      }
      type Action = keyof typeof actions
      const weighted: readonly Action[] = [
        'create',
        'rotate',
        'rotate',
        'update',
        'revoke',
        'pass',
        'pass',
        'pass',
      ]
      await actions.create()
      for (let step = 0; step < 60; step += 1) {
        await actions[pick(weighted)]()
        const key = pick(model)
        for (const { text, untilSeconds } of key.secrets.slice(-3)) {
          const endSeconds = Math.min(untilSeconds, key.endSeconds)
          const { denial } = await pick(isolates)(text)
          if (key.isRevoked || isPastTolerance(endSeconds)) expect(denial, text).toBeDefined()
          else if (nowSeconds() < endSeconds) expect(denial, text).toBeUndefined()
        }
      }
      const listed: (readonly [string, ApiKeyStatus])[] = []
      let cursor: string | undefined
      do {
        const page = await keys.list({ limit: 5, cursor }, { subject })
        listed.push(...page.items.map((key) => [key.id, statusOf(key, nowSeconds())] as const))
        cursor = page.cursor
      } while (cursor !== undefined)
      const expected = model.map(({ id, isRevoked, endSeconds }) => [
        id,
        isRevoked ? 'revoked' : nowSeconds() >= endSeconds ? 'expired' : 'active',
      ])
      expect(listed.toSorted()).toEqual(expected.toSorted())
    },
  )
})
