import { v7 } from 'uuid'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { isApiKey, newApiKey } from '../../../src/access/tokens/api-key.ts'
import { credentialHash } from '../../../src/access/tokens/reference.ts'
import { PUBLIC_URL, startGateway, type TestGateway } from './gateway.ts'

/** 100 days. */
const ENDED_SECONDS = 8_640_000

describe.each(['auto', 'embedded'] as const)('API keys (%s Redis)', (prefer) => {
  let gateway: TestGateway
  beforeAll(async () => {
    gateway = await startGateway({ prefer })
  })
  afterAll(() => gateway.close())

  const create = async (body: object = {}) => {
    const reply = await gateway.admin('POST', '/api-keys', {
      name: 'nightly',
      subject: `robot-${crypto.randomUUID()}`,
      roles: ['reader'],
      ...body,
    })
    expect(reply.status, reply.text).toBe(201)
    return reply.body
  }
  /** The stored record of a secret. */
  const recordOf = async (key: string) =>
    JSON.parse(
      (await gateway.redis.direct.get(`pc:reference:${await credentialHash(key)}`)) ?? 'null',
    ).record
  const statuses = async (key: string) => [
    (await gateway.call(key, 0)).status,
    (await gateway.call(key, 1)).status,
  ]

  test('a key works at once in every isolate, and is refused at once by isolates that cached it', async () => {
    const { id, apiKey, ...view } = await create({ tenant: 'acme', expiresInSeconds: 3_600 })
    expect(isApiKey(apiKey)).toBe(true)
    expect(view).toMatchObject({ name: 'nightly', roles: ['reader'], scopes: [], tenant: 'acme' })
    expect(Date.parse(view.expiresAt) - Date.parse(view.createdAt)).toBe(3_600_000)
    expect(await statuses(apiKey)).toEqual([200, 200])
    expect((await gateway.admin('DELETE', `/api-keys/${id}`)).status).toBe(204)
    const before = gateway.originCalls()
    expect(await statuses(apiKey)).toEqual([401, 401])
    expect(gateway.originCalls()).toBe(before)
    expect((await gateway.admin('DELETE', `/api-keys/${id}`)).status).toBe(404)
    expect((await gateway.admin('POST', `/api-keys/${id}/secret`)).status).toBe(404)
  })

  test('ended keys stay listed with their status, end, plan and prefix, and a filter selects them', async () => {
    const subject = crypto.randomUUID()
    const [active, revoked] = [await create({ subject }), await create({ subject, plan: 'pro' })]
    expect((await gateway.admin('DELETE', `/api-keys/${revoked.id}`)).status).toBe(204)
    const listed = async (query = '') =>
      (await gateway.admin('GET', `/api-keys?subject=${subject}${query}`)).body.apiKeys
    expect(await listed()).toMatchObject([
      {
        id: revoked.id,
        status: 'revoked',
        revokedBy: 'olga',
        plan: 'pro',
        prefix: revoked.apiKey.slice(0, 9),
      },
      { id: active.id, status: 'active', endedAt: null, revokedBy: null, plan: null },
    ])
    const [{ endedAt, createdAt }] = await listed('&status=revoked')
    expect(Date.parse(endedAt)).toBeGreaterThanOrEqual(Date.parse(createdAt))
    expect(await listed('&status=active')).toMatchObject([{ id: active.id }])
    expect(await listed('&status=expired')).toEqual([])
    expect((await gateway.admin('GET', '/api-keys?status=ended')).status).toBe(422)
    const shown = await gateway.admin('GET', `/api-keys/${revoked.id}`)
    expect(shown.body).toMatchObject({ status: 'revoked', plan: 'pro' })
    // The assignment has ended with the key.
    expect((await gateway.admin('GET', '/plans')).text).not.toContain(revoked.id)
  })

  test('an event of a revoked key names the caller, in isolates that cached it or not', async () => {
    const { id, apiKey, subject, tokenId } = await create({ tenant: 'acme' })
    await gateway.call(apiKey, 0)
    const { actor } = gateway.events.at(-1) ?? {}
    expect(actor).toMatchObject({ key: id, subject, tenant: 'acme' })
    await gateway.admin('DELETE', `/api-keys/${id}`)
    const before = gateway.originCalls()
    for (const at of [0, 1, 1] as const) {
      expect((await gateway.call(apiKey, at)).body.code).toBe('invalid_token')
      expect(gateway.events.at(-1)).toMatchObject({ reason: 'token_revoked:token', actor })
    }
    expect(gateway.originCalls()).toBe(before)
    expect(JSON.stringify(gateway.events)).not.toContain(apiKey)
    expect(tokenId).toBeDefined()
    await gateway.call(newApiKey(), 0)
    expect(gateway.events.at(-1)?.actor).toMatchObject({ subject: null, tokenIdHash: null })
    expect(gateway.events.at(-1)?.actor.key).toBeUndefined()
  })

  test('a leaked key is found by itself, also in its grace period, and no event records it', async () => {
    const { id, apiKey } = await create({ plan: 'pro' })
    const lookUp = (key: string) => gateway.admin('POST', '/api-key-lookups', { apiKey: key })
    expect((await lookUp(apiKey)).body).toMatchObject({ id, plan: 'pro', current: true })
    const rotated = await gateway.admin('POST', `/api-keys/${id}/secret`, { graceSeconds: 300 })
    expect((await lookUp(apiKey)).body).toMatchObject({ id, current: false })
    expect((await lookUp(rotated.body.apiKey)).body).toMatchObject({ id, current: true })
    expect((await gateway.admin('DELETE', `/api-keys/${id}`)).status).toBe(204)
    for (const key of [apiKey, rotated.body.apiKey]) expect((await lookUp(key)).status).toBe(404)
    expect((await lookUp(`${apiKey.slice(0, -1)}!`)).status).toBe(422)
    const mistyped = `${apiKey.slice(0, 10)}${apiKey[10] === 'A' ? 'B' : 'A'}${apiKey.slice(11)}`
    expect((await lookUp(mistyped)).status).toBe(422)
    expect(JSON.stringify(gateway.events)).not.toContain(apiKey)
    expect(await gateway.dump()).not.toContain(apiKey)
  })

  test('a list has the plan of each key and the first nine characters of its present secret', async () => {
    const first = await create()
    const second = await create({ plan: 'pro' })
    const { body } = await gateway.admin('GET', '/api-keys?limit=2')
    const shown = body.apiKeys.map(({ id, prefix, plan }: Record<string, string>) => [
      id,
      prefix,
      plan,
    ])
    expect(shown).toEqual([
      [second.id, second.apiKey.slice(0, 9), 'pro'],
      [first.id, first.apiKey.slice(0, 9), null],
    ])
    const { apiKey } = (await gateway.admin('POST', `/api-keys/${first.id}/secret`, {})).body
    const { prefix } = (await gateway.admin('GET', `/api-keys/${first.id}`)).body
    expect(prefix).toBe(apiKey.slice(0, 9))
  })

  test('a role that the policy does not have is refused with a suggestion, and nothing is created', async () => {
    const before = await gateway.state()
    const roles = ['reader', 'raeder']
    const reply = await gateway.admin('POST', '/api-keys', { name: 'x', subject: 'x', roles })
    expect(reply.status).toBe(422)
    expect(reply.body.errors).toMatchObject([
      { in: 'body', path: '/roles/1', message: expect.stringContaining('did you mean "reader"?') },
    ])
    expect(await gateway.state()).toBe(before)
  })

  test('after a rotation the new key works and the old key does not, in both isolates', async () => {
    const { id, apiKey, tokenId } = await create()
    expect(await statuses(apiKey)).toEqual([200, 200])
    const { status, body } = await gateway.admin('POST', `/api-keys/${id}/secret`, {})
    expect(status).toBe(200)
    expect(body.id).toBe(id)
    expect(body.apiKey).not.toBe(apiKey)
    expect(await statuses(apiKey)).toEqual([401, 401])
    expect(await statuses(body.apiKey)).toEqual([200, 200])
    const { apiKeys } = (await gateway.admin('GET', '/api-keys?limit=1')).body
    expect(apiKeys[0].id).toBe(id)
    expect(apiKeys[0].tokenId).not.toBe(tokenId)
    expect((await recordOf(apiKey)).revokedAtSeconds).toBeGreaterThan(0)
    expect((await recordOf(body.apiKey)).revokedAtSeconds).toBeUndefined()
  })

  test('with a grace period, old keys stay valid in both isolates until it ends', async () => {
    const { id, apiKey } = await create({ expiresInSeconds: 3_600 })
    expect(await statuses(apiKey)).toEqual([200, 200])
    const path = `/api-keys/${id}/secret`
    const second = (await gateway.admin('POST', path, { graceSeconds: 600 })).body.apiKey
    const third = (await gateway.admin('POST', path, { graceSeconds: 300 })).body.apiKey
    for (const key of [apiKey, second, third]) expect(await statuses(key)).toEqual([200, 200])
    for (const key of [apiKey, second]) {
      const { expiresAtSeconds } = await recordOf(key)
      expect(expiresAtSeconds - Math.floor(Date.now() / 1000)).toBeGreaterThan(290)
      expect(expiresAtSeconds - Math.floor(Date.now() / 1000)).toBeLessThanOrEqual(300)
    }
    const last = (await gateway.admin('POST', path)).body.apiKey
    for (const key of [apiKey, second, third]) expect(await statuses(key)).toEqual([401, 401])
    expect(await statuses(last)).toEqual([200, 200])
  })

  test('a key that is disabled in its grace period is refused with every secret', async () => {
    const { id, apiKey } = await create()
    const reply = await gateway.admin('POST', `/api-keys/${id}/secret`, { graceSeconds: 86_400 })
    for (const key of [apiKey, reply.body.apiKey]) expect(await statuses(key)).toEqual([200, 200])
    expect((await gateway.admin('DELETE', `/api-keys/${id}`)).status).toBe(204)
    for (const key of [apiKey, reply.body.apiKey]) expect(await statuses(key)).toEqual([401, 401])
    for (const key of [apiKey, reply.body.apiKey])
      expect((await recordOf(key)).revokedAtSeconds).toBeGreaterThan(0)
  })

  test('at most eight old keys stay valid', async () => {
    const { id, apiKey } = await create()
    const keys = [apiKey]
    for (let count = 0; count < 9; count++) {
      const reply = await gateway.admin('POST', `/api-keys/${id}/secret`, { graceSeconds: 300 })
      keys.push(reply.body.apiKey)
    }
    const [oldest = '', ...others] = keys
    expect(await statuses(oldest)).toEqual([401, 401])
    for (const key of others) expect((await gateway.call(key)).status).toBe(200)
  })

  test.each([
    [1, 'must be 0, or at least 300'],
    [299, 'must be 0, or at least 300'],
    [86_401, 'Too big: expected number to be <=86400'],
    [300.5, 'Invalid input: expected int, received number'],
  ])('a grace period of %d s is refused', async (grace, message) => {
    const { id, apiKey } = await create()
    const reply = await gateway.admin('POST', `/api-keys/${id}/secret`, { graceSeconds: grace })
    expect(reply.status).toBe(422)
    expect(reply.body.errors).toMatchObject([{ in: 'body', path: '/graceSeconds', message }])
    expect(await statuses(apiKey)).toEqual([200, 200])
  })

  test('of many concurrent rotations, those that lose are 409, and one key is valid', async () => {
    const { id } = await create()
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => gateway.admin('POST', `/api-keys/${id}/secret`)),
    )
    const lost = replies.filter(({ status }) => status !== 200)
    for (const { status, body } of lost)
      expect({ status, code: body.code }).toEqual({ status: 409, code: 'conflict' })
    const keys = replies.flatMap(({ body }) => body.apiKey ?? [])
    const good: string[] = []
    for (const key of keys) if ((await gateway.call(key)).status === 200) good.push(key)
    expect(good).toHaveLength(1)
  })

  test('five concurrent rotations leave one valid key', async () => {
    const { id } = await create()
    const replies = await Promise.all(
      // A rotation yields to another rotation four times before it gives up.
      Array.from({ length: 5 }, () => gateway.admin('POST', `/api-keys/${id}/secret`)),
    )
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
    const keys = replies.map(({ body }) => body.apiKey)
    const good: string[] = []
    for (const key of keys) if ((await gateway.call(key)).status === 200) good.push(key)
    expect(good).toHaveLength(1)
  })

  test('a key has the permissions that it was created with, and no others', async () => {
    const { apiKey } = await create({ roles: [], scopes: ['orders:write'] })
    expect((await gateway.call(apiKey)).status).toBe(403)
    const operator = await create({ roles: ['operator'] })
    const reply = await gateway.admin('GET', '/api-keys', undefined, { as: operator.apiKey })
    expect(reply.status).toBe(200)
  })

  test('a key appears in the response that creates it and nowhere else [S40]', async () => {
    const first = await create({ name: 'shown once' })
    const rotated = (await gateway.admin('POST', `/api-keys/${first.id}/secret`)).body.apiKey
    await gateway.call(rotated)
    const list = (await gateway.admin('GET', '/api-keys?limit=200')).text
    const dump = await gateway.dump()
    for (const secret of [first.apiKey, rotated]) {
      for (const place of [list, dump, JSON.stringify(gateway.events)])
        expect(place).not.toContain(secret.slice(3, 20))
      expect(list).not.toContain(await credentialHash(secret))
    }
    expect(dump).toContain(await credentialHash(rotated))
  })

  test.each([
    ['subject', (key: { subject: string }) => key.subject],
    ['tenant', () => 'acme-2'],
    ['token', (key: { tokenId: string }) => key.tokenId],
  ] as const)(
    'a revocation of a %s lasts as long as its longest-lived key [S34]',
    async (kind, of) => {
      const key = await create({ tenant: 'acme-2', expiresInSeconds: 200 * 86_400 })
      expect(await statuses(key.apiKey)).toEqual([200, 200])
      const body = { kind, value: of(key), issuer: PUBLIC_URL }
      const reply = await gateway.admin('POST', '/revocations', body)
      expect(reply.status, reply.text).toBe(201)
      expect(await statuses(key.apiKey)).toEqual([401, 401])
      expect(Date.parse(reply.body.expiresAt)).toBeGreaterThanOrEqual(Date.parse(key.expiresAt))
      await gateway.admin('DELETE', `/revocations/${reply.body.id}`)
    },
  )

  test('a key without an expiry has no TTL, a key with an expiry has one, and the list shows it', async () => {
    const [endless, ending] = [await create(), await create({ expiresInSeconds: 60 })]
    expect(endless.expiresAt).toBeNull()
    const ttl = async ({ id, apiKey }: { id: string; apiKey: string }) => [
      await gateway.redis.direct.ttl(`pc:api-key:${id}`),
      await gateway.redis.direct.ttl(`pc:reference:${await credentialHash(apiKey)}`),
    ]
    expect(await ttl(endless)).toEqual([-1, -1])
    for (const seconds of await ttl(ending)) {
      expect(seconds).toBeGreaterThan(ENDED_SECONDS + 55)
      expect(seconds).toBeLessThanOrEqual(ENDED_SECONDS + 65)
    }
  })

  test('the list is filtered by tenant and subject, page by page, also far behind others', async () => {
    const tenant = `tenant-${crypto.randomUUID()}`
    const first = await create({ tenant })
    const second = await create({ tenant })
    const list = async (query: string) =>
      (await gateway.admin('GET', `/api-keys?${query}`)).body as {
        apiKeys: { id: string }[]
        cursor?: string
      }
    const idsOf = async (query: string) => (await list(query)).apiKeys.map(({ id }) => id)
    expect(await idsOf(`tenant=${tenant}`)).toEqual([second.id, first.id])
    expect(await idsOf(`tenant=${tenant}&subject=${first.subject}`)).toEqual([first.id])
    expect(await idsOf(`subject=${second.subject}`)).toEqual([second.id])
    const page = await list(`tenant=${tenant}&limit=1`)
    expect(page.apiKeys).toMatchObject([{ id: second.id }])
    expect(await idsOf(`tenant=${tenant}&limit=1&cursor=${page.cursor}`)).toEqual([first.id])

    // 1,200 newer keys of another tenant, as a copy of a record.
    const record = JSON.parse((await gateway.redis.direct.get(`pc:api-key:${first.id}`)) ?? '')
    const others = Array.from({ length: 1_200 }, () => v7())
    const index = 'pc:api-keys'
    await gateway.redis.direct.zadd(index, ...others.flatMap((id) => ['0', id]))
    await gateway.redis.direct.mset(
      others.flatMap((id) => [
        `pc:api-key:${id}`,
        JSON.stringify({ ...record, id, tenant: 'other' }),
      ]),
    )
    const none = await list(`tenant=${tenant}`)
    expect(none).toMatchObject({ apiKeys: [], cursor: expect.any(String) })
    expect(await idsOf(`tenant=${tenant}&cursor=${none.cursor}`)).toEqual([second.id, first.id])
    await gateway.redis.direct.zrem(index, ...others)
    expect((await gateway.admin('GET', '/api-keys?tenant=')).status).toBe(422)
  })

  test('a change of a key keeps its secrets, and what the change does not name', async () => {
    const described = { tenant: 'acme', expiresInSeconds: 3_600, metadata: { team: 'billing' } }
    const { id, apiKey, ...made } = await create(described)
    expect(made).toMatchObject({ metadata: { team: 'billing' }, lastUsedAt: null })
    const second = (await gateway.admin('POST', `/api-keys/${id}/secret`, { graceSeconds: 600 }))
      .body.apiKey
    const path = `/api-keys/${id}`
    const renamed = await gateway.admin('PATCH', path, { name: 'renamed' })
    expect(renamed.status, renamed.text).toBe(200)
    expect(renamed.body).toMatchObject({
      name: 'renamed',
      tenant: 'acme',
      metadata: { team: 'billing' },
      expiresAt: made.expiresAt,
      createdAt: made.createdAt,
    })
    const noted = await gateway.admin('PATCH', path, { metadata: { env: 'prod' } })
    expect(noted.body).toMatchObject({ name: 'renamed', metadata: { env: 'prod' } })
    expect((await gateway.admin('GET', path)).body).toEqual(noted.body)
    for (const key of [apiKey, second]) expect(await statuses(key)).toEqual([200, 200])
    expect(gateway.events.findLast(({ change }) => change)?.change).toEqual({
      action: 'api-key.update',
      target: id,
    })
  })

  test('a new expiry replaces the TTLs of the record and of each secret [S34]', async () => {
    const { id, apiKey } = await create({ expiresInSeconds: 600 })
    const path = `/api-keys/${id}`
    const next = (await gateway.admin('POST', `${path}/secret`, { graceSeconds: 86_400 })).body
    const lives = () =>
      Promise.all([
        gateway.redis.direct.ttl(`pc:api-key:${id}`),
        credentialHash(next.apiKey).then((hash) =>
          gateway.redis.direct.ttl(`pc:reference:${hash}`),
        ),
        credentialHash(apiKey).then((hash) => gateway.redis.direct.ttl(`pc:reference:${hash}`)),
      ])
    const within = (seconds: number) => (ttl: number) =>
      ttl > ENDED_SECONDS + seconds && ttl <= ENDED_SECONDS + seconds + 5
    const longer = await gateway.admin('PATCH', path, { expiresInSeconds: 86_400 })
    expect(longer.status, longer.text).toBe(200)
    const [record = 0, present = 0, old = 0] = await lives()
    expect([record, present].every(within(86_400))).toBe(true)
    // A grace period does not become longer with the key.
    expect(within(600)(old)).toBe(true)
    await gateway.admin('PATCH', path, { expiresInSeconds: 300 })
    expect((await lives()).every(within(300))).toBe(true)
    const endless = await gateway.admin('PATCH', path, { expiresInSeconds: null })
    expect(endless.body.expiresAt).toBeNull()
    const [noEnd, noEndEither, ofOld = 0] = await lives()
    expect([noEnd, noEndEither]).toEqual([-1, -1])
    expect(within(300)(ofOld)).toBe(true)
  })

  test('an isolate that cached a key accepts it after its first expiry, if that was extended', async () => {
    const { id, apiKey } = await create({ expiresInSeconds: 30 })
    expect((await gateway.call(apiKey, 1)).status).toBe(200)
    const reply = await gateway.admin('PATCH', `/api-keys/${id}`, { expiresInSeconds: null })
    expect(reply.status, reply.text).toBe(200)
    vi.useFakeTimers({ now: Date.now() + 60_000, toFake: ['Date'] })
    try {
      expect((await gateway.call(apiKey, 1)).status).toBe(200)
    } finally {
      vi.useRealTimers()
    }
  })

  test.each([
    ['token', (key: { tokenId: string }) => key.tokenId],
    ['subject', (key: { subject: string }) => key.subject],
    ['tenant', () => 'acme-3'],
  ] as const)(
    'the expiry of a key with a revoked %s does not change, so that the revocation does not end before it',
    async (kind, of) => {
      const key = await create({ tenant: 'acme-3', expiresInSeconds: 3_600 })
      const body = { kind, value: of(key), issuer: PUBLIC_URL }
      const { body: revocation } = await gateway.admin('POST', '/revocations', body)
      const path = `/api-keys/${key.id}`
      const reply = await gateway.admin('PATCH', path, { expiresInSeconds: null })
      expect(reply.status).toBe(422)
      expect(reply.body.errors).toMatchObject([
        {
          in: 'body',
          path: '/expiresInSeconds',
          message: 'must be absent, because the key is revoked',
        },
      ])
      expect((await gateway.admin('GET', path)).body.expiresAt).toBe(key.expiresAt)
      expect((await gateway.admin('PATCH', path, { name: 'x' })).status).toBe(200)
      await gateway.admin('DELETE', `/revocations/${revocation.id}`)
    },
  )

  test('of many concurrent changes none is lost: each one applies or is 409', async () => {
    const { id } = await create()
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, at) =>
        at % 2 === 0
          ? gateway.admin('PATCH', `/api-keys/${id}`, { name: `name-${at}` })
          : gateway.admin('PATCH', `/api-keys/${id}`, { metadata: { at: String(at) } }),
      ),
    )
    for (const { status } of replies) expect([200, 409]).toContain(status)
    const done = replies.filter(({ status }) => status === 200).length
    const stored = await gateway.redis.direct.get(`pc:api-key:${id}`)
    expect(JSON.parse(stored ?? '')).toMatchObject({ revision: done })
  })

  test.each([
    [{ metadata: { '1x': 'a' } }, '/metadata/1x', 'must be a name such as team or cost-center'],
    [
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`m${at}`, 'x'])) },
      '/metadata',
      'must have at most 16 entries',
    ],
    [{ metadata: { team: 'x'.repeat(257) } }, '/metadata/team', 'Too big'],
    [{ metadata: { team: 'a\nb' } }, '/metadata/team', 'must be printable'],
    [{ expiresInSeconds: 299 }, '/expiresInSeconds', 'Too small'],
  ])('a change to %j is refused', async (change, path, message) => {
    const { id } = await create()
    const reply = await gateway.admin('PATCH', `/api-keys/${id}`, change)
    expect(reply.status).toBe(422)
    expect(reply.body.errors).toMatchObject([
      { in: 'body', path, message: expect.stringContaining(message) },
    ])
  })

  test('the last use of a key is shown, by the list as well, also after its end', async () => {
    const { id, apiKey } = await create()
    const before = Math.floor(Date.now() / 60_000) * 60_000 - 60_000
    await gateway.call(apiKey, 1)
    const { lastUsedAt } = (await gateway.admin('GET', `/api-keys/${id}`)).body
    expect(Date.parse(lastUsedAt)).toBeGreaterThanOrEqual(before)
    const { apiKeys } = (await gateway.admin('GET', '/api-keys?limit=1')).body
    expect(apiKeys[0]).toMatchObject({ id, lastUsedAt })
    await gateway.admin('DELETE', `/api-keys/${id}`)
    expect((await gateway.admin('GET', `/api-keys/${id}`)).body).toMatchObject({ lastUsedAt })
    const [use = ''] = await gateway.redis.direct.keys(`*api-key-use:${id}`)
    expect(await gateway.redis.direct.ttl(use)).toBeGreaterThan(0)
  })
})
