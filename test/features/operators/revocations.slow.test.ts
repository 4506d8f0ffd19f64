import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lanesOfRun } from '../../harness/lanes.ts'
import { ISSUER, PUBLIC_URL, REMOTE_ISSUER, startGateway, type TestGateway } from './gateway.ts'

/** The version of a copy, which a lane has for an hour. */
const COPIED = /^pc:\{\w+\}:copied:/

describe.each(['auto', 'embedded'] as const)('revocations (%s Redis)', (prefer) => {
  let gateway: TestGateway
  beforeAll(async () => {
    gateway = await startGateway({ prefer })
  })
  afterAll(() => gateway.close())

  const revoke = async (body: object) => {
    const reply = await gateway.admin('POST', '/revocations', body)
    expect(reply.status, reply.text).toBe(201)
    return reply.body.id as string
  }
  const restore = async (id: string) =>
    expect((await gateway.admin('DELETE', `/revocations/${id}`)).status).toBe(204)
  const statuses = async (token: string) => [
    (await gateway.call(token, 0)).status,
    (await gateway.call(token, 1)).status,
  ]
  const unique = () => crypto.randomUUID()

  describe.each([
    ['token', 'jti'],
    ['session', 'sid'],
    ['subject', 'sub'],
    ['client', 'client_id'],
    ['tenant', 'tenant'],
  ])('of a %s [S30, S33]', (kind, claim) => {
    test('takes effect in every isolate from the next request on, and so does its deletion', async () => {
      const value = unique()
      const token = await gateway.token({ [claim]: value })
      const other = await gateway.token({ [claim]: unique() })
      expect(await statuses(token)).toEqual([200, 200])
      const id = await revoke({ kind, value, reason: 'a test' })
      const before = gateway.originCalls()
      expect(await statuses(token)).toEqual([401, 401])
      expect(gateway.originCalls()).toBe(before)
      expect(await statuses(other)).toEqual([200, 200])
      await restore(id)
      // An isolate may cache the refusal of this token for 10 s.
      const again = kind === 'token' ? gateway.isolate() : undefined
      if (again === undefined) return expect(await statuses(token)).toEqual([200, 200])
      const headers = { Authorization: `Bearer ${token}`, 'CF-Connecting-IP': '192.0.2.1' }
      const reply = await again.fetch(new Request(`${PUBLIC_URL}/orders`, { headers }))
      return expect(reply.status).toBe(200)
    })
  })

  test('with an issuer leaves the same name of another issuer alone; without an issuer it covers all', async () => {
    const value = unique()
    const [here, there] = [
      await gateway.token({ sub: value }),
      await gateway.token({ sub: value }, REMOTE_ISSUER),
    ]
    const first = await revoke({ kind: 'subject', value, issuer: REMOTE_ISSUER })
    expect(await statuses(here)).toEqual([200, 200])
    expect(await statuses(there)).toEqual([401, 401])
    await revoke({ kind: 'subject', value })
    expect(await statuses(here)).toEqual([401, 401])
    await restore(first)
    expect(await statuses(there)).toEqual([401, 401])
  })

  test('a token covered by two revocations stays revoked until both are deleted', async () => {
    const value = unique()
    const token = await gateway.token({ tenant: value })
    const [first, second] = [
      await revoke({ kind: 'tenant', value }),
      await revoke({ kind: 'tenant', value }),
    ]
    await restore(second)
    expect(await statuses(token)).toEqual([401, 401])
    await restore(first)
    expect(await statuses(token)).toEqual([200, 200])
    const names = await gateway.redis.direct.keys(`*${value}*`)
    expect(names.filter((name) => !COPIED.test(name))).toEqual([])
  })

  test('deleting a revocation restores the earlier cutoff: newer tokens are accepted, older ones are not', async () => {
    const value = unique()
    const now = Math.floor(Date.now() / 1000)
    const key = `pc:cutoff:subject:${encodeURIComponent(ISSUER)}:${value}`
    await gateway.redis.direct.set(key, now - 100, 'EX', 1_000)
    const [old, recent] = [
      await gateway.token({ sub: value, iat: now - 200, exp: now + 300 }),
      await gateway.token({ sub: value, iat: now - 50, exp: now + 300 }),
    ]
    const id = await revoke({ kind: 'subject', value })
    expect(await statuses(recent)).toEqual([401, 401])
    await restore(id)
    expect(await statuses(recent)).toEqual([200, 200])
    expect(await statuses(old)).toEqual([401, 401])
    expect(await gateway.redis.direct.get(key)).toBe(String(now - 100))
    expect(await gateway.redis.direct.ttl(key)).toBeLessThanOrEqual(1_000)
  })

  test('deleting a revocation does not undo a later one by another writer', async () => {
    const value = unique()
    const key = `pc:cutoff:session:${encodeURIComponent(ISSUER)}:${value}`
    const id = await revoke({ kind: 'session', value, issuer: ISSUER })
    const later = Number(await gateway.redis.direct.get(key)) + 5
    await gateway.redis.direct.set(key, later, 'EX', 500)
    await restore(id)
    expect(await gateway.redis.direct.get(key)).toBe(String(later))
  })

  test('cutoffs outlive sessions, and revocations of tokens outlive the longest token [S34]', async () => {
    const value = unique()
    await revoke({ kind: 'subject', value, issuer: ISSUER })
    const key = `pc:cutoff:subject:${encodeURIComponent(ISSUER)}:${value}`
    expect(await gateway.redis.direct.ttl(key)).toBeGreaterThan(30 * 86_400 + 290)
    const before = new Set(await gateway.redis.direct.keys('pc:revoked:*'))
    await revoke({ kind: 'token', value, issuer: ISSUER })
    const [added = ''] = (await gateway.redis.direct.keys('pc:revoked:*')).filter(
      (name) => !before.has(name),
    )
    expect(await gateway.redis.direct.ttl(added)).toBeGreaterThan(86_400 + 290)
    const endless: string[] = []
    for (const name of await gateway.redis.direct.keys('pc:*'))
      if ((await gateway.redis.direct.ttl(name)) < 0) endless.push(name)
    const ofLanes = lanesOfRun > 0 ? ['pc:fact-clock', 'pc:facts'] : []
    expect(endless.sort()).toEqual([...ofLanes, 'pc:revocations', 'pc:revocations:ends'])
  })

  test('a list returns the newest first, page by page, without expired revocations', async () => {
    const ids: string[] = []
    for (let count = 0; count < 5; count++)
      ids.unshift(await revoke({ kind: 'client', value: unique() }))
    const first = (await gateway.admin('GET', '/revocations?limit=2')).body
    expect(first.revocations.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 2))
    const second = (await gateway.admin('GET', `/revocations?limit=2&cursor=${first.cursor}`)).body
    expect(second.revocations.map(({ id }: { id: string }) => id)).toEqual(ids.slice(2, 4))
    expect(first.revocations[0]).toMatchObject({
      kind: 'client',
      issuer: null,
      reason: null,
      createdBy: 'olga',
    })
    const [ended = ''] = ids
    await gateway.redis.direct.zadd('pc:revocations:ends', 1, ended)
    await gateway.redis.direct.del(`pc:revocation:${ended}`)
    const after = (await gateway.admin('GET', '/revocations?limit=1')).body
    expect(after.revocations[0].id).toBe(ids[1])
    expect(await gateway.redis.direct.zscore('pc:revocations', ended)).toBeNull()
  })

  test('the last page of a list has no cursor', async () => {
    let cursor: string | undefined
    const seen: string[] = []
    do {
      const query = cursor === undefined ? '' : `&cursor=${cursor}`
      const { body } = await gateway.admin('GET', `/revocations?limit=3${query}`)
      seen.push(...body.revocations.map(({ id }: { id: string }) => id))
      cursor = body.cursor
    } while (cursor !== undefined)
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen.length).toBe(await gateway.redis.direct.zcard('pc:revocations'))
  })

  test('an unknown issuer is refused, and nothing is written', async () => {
    const before = await gateway.state()
    const reply = await gateway.admin('POST', '/revocations', {
      kind: 'subject',
      value: 'alice',
      issuer: 'https://idp.example',
    })
    expect(reply.status).toBe(422)
    expect(reply.body.errors).toMatchObject([{ in: 'body', path: '/issuer' }])
    expect(await gateway.state()).toBe(before)
  })

  test('a second deletion is 404, and so is an unknown id', async () => {
    const id = await revoke({ kind: 'subject', value: unique() })
    await restore(id)
    expect((await gateway.admin('DELETE', `/revocations/${id}`)).status).toBe(404)
    expect((await gateway.admin('DELETE', `/revocations/${unique()}`)).status).toBe(404)
  })
})

test('a revocation of a subject suspends its sessions until the revocation is deleted [S30]', async () => {
  const gateway = await startGateway()
  try {
    const { clientId, clientSecret } = (
      await gateway.admin('POST', '/clients', {
        name: 'edge',
        grants: ['urn:ietf:params:oauth:grant-type:token-exchange', 'refresh_token'],
      })
    ).body
    const requestToken = (form: Record<string, string>) =>
      gateway.send('/oauth/token', {
        method: 'POST',
        headers: { Authorization: `Basic ${btoa(`${clientId}:${clientSecret}`)}` },
        body: new URLSearchParams(form),
      })
    const sub = crypto.randomUUID()
    const login = await requestToken({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: await gateway.token({ sub }),
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    })
    expect(login.status, login.text).toBe(200)
    const { access_token, refresh_token } = login.body
    expect((await gateway.call(access_token, 1)).status).toBe(200)
    const revocation = { kind: 'subject', value: sub, issuer: ISSUER }
    const { id } = (await gateway.admin('POST', '/revocations', revocation)).body
    expect((await gateway.call(access_token, 1)).status).toBe(401)
    const refresh = () => requestToken({ grant_type: 'refresh_token', refresh_token })
    expect((await refresh()).body.error).toBe('invalid_grant')
    expect((await gateway.admin('DELETE', `/revocations/${id}`)).status).toBe(204)
    expect((await gateway.call(access_token, 1)).status).toBe(200)
    expect((await refresh()).status).toBe(200)
  } finally {
    await gateway.close()
  }
})
