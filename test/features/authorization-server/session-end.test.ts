/**
 * The end of derived tokens: a token ends with the token that it was obtained from, unless the
 * policy sets `sessionSeconds`.
 */
import fc from 'fast-check'
import { decodeJwt } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { EXCHANGE, startGateway, type TestClient, type TestGateway } from './gateway.ts'

const SESSION_SECONDS = 86_400
const ROOTS = ['login', 'minted', "client's own"] as const
const FORMATS = ['jwt', 'opaque'] as const

let bounded: TestGateway
let lasting: TestGateway
beforeAll(async () => {
  bounded = await startGateway({ sessionSeconds: undefined })
  lasting = await startGateway({ sessionSeconds: SESSION_SECONDS })
})
afterEach(() => {
  vi.useRealTimers()
})
afterAll(async () => {
  await bounded?.close()
  await lasting?.close()
})

const nowSeconds = () => Math.floor(Date.now() / 1000)

/** Returns a token of `seconds` that nothing was derived from yet. */
async function rootOf(gateway: TestGateway, kind: (typeof ROOTS)[number], seconds: number) {
  const claims = { sub: 'alice', roles: ['reader'], exp: nowSeconds() + seconds }
  if (kind === 'login') return gateway.login({ claims })
  if (kind === 'minted') return gateway.sign({ ...claims, client_id: 'olga' }, { typ: 'at+jwt' })
  const service = await gateway.createClient({ roles: ['reader'], accessTokenSeconds: 300 })
  return (await gateway.token(service, { grant_type: 'client_credentials' })).body.access_token
}

const expOf = (token: string) => decodeJwt(token).exp ?? Number.POSITIVE_INFINITY

describe.each(ROOTS)('from a %s token [S70]', (kind) => {
  test('no chain of exchanges and refreshes gives a later expiry', async () => {
    const gateway = bounded
    const clients: TestClient[] = []
    for (const tokenFormat of FORMATS)
      for (const grants of [[EXCHANGE], [EXCHANGE, 'refresh_token']] as const)
        clients.push(await gateway.createClient({ grants: [...grants], tokenFormat }))
    const endOf = async (client: TestClient, token: string): Promise<number> => {
      const { body } = await gateway.introspect(client, token)
      expect(body).toMatchObject({ active: true, exp: expect.any(Number) })
      return body.exp
    }
    const step = fc.record({
      refreshes: fc.boolean(),
      which: fc.nat(),
      client: fc.nat(clients.length - 1),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 200, max: 800 }),
        fc.array(step, { minLength: 1, maxLength: 6 }),
        async (seconds, steps) => {
          const root = await rootOf(gateway, kind, seconds)
          const access = [{ token: root, end: expOf(root) }]
          const families: { client: TestClient; token: string; end: number }[] = []
          for (const { refreshes, which, client: index } of steps) {
            const family = families[which % Math.max(1, families.length)]
            const parent = access[which % access.length]
            const client = refreshes ? family?.client : clients[index]
            if (client === undefined || parent === undefined) continue
            const reply =
              refreshes && family !== undefined
                ? await gateway.refresh(client, family.token)
                : await gateway.exchange(client, parent.token)
            expect(reply.status, reply.text).toBe(200)
            const { access_token: token, refresh_token: refreshToken } = reply.body
            const latest = refreshes && family !== undefined ? family.end : parent.end
            const end = await endOf(client, token)
            expect(end).toBeLessThanOrEqual(latest)
            access.push({ token, end })
            if (refreshToken === undefined) continue
            const sessionEnd = await endOf(client, refreshToken)
            expect(sessionEnd).toBeLessThanOrEqual(latest)
            if (refreshes && family !== undefined) family.token = refreshToken
            else families.push({ client, token: refreshToken, end: sessionEnd })
          }
        },
      ),
      { numRuns: 15 },
    )
    for (const key of await gateway.redis.direct.keys('pc:*refresh:*'))
      expect(await gateway.redis.direct.ttl(key)).toBeLessThanOrEqual(900)
  })
})

describe.each(['bounded', 'lasting'] as const)(
  'a token of the gateway itself (%s policy) [S70]',
  (which) => {
    test.each(FORMATS)('begins no session that outlives it (%s)', async (tokenFormat) => {
      const gateway = which === 'bounded' ? bounded : lasting
      const client = await gateway.createClient({ tokenFormat })
      const token = await rootOf(gateway, 'minted', 900)
      const { body } = await gateway.exchange(client, token)
      expect((await gateway.introspect(client, body.refresh_token)).body.exp).toBe(expOf(token))
      expect((await gateway.refresh(client, body.refresh_token)).status).toBe(200)
      const { refresh_token } = (await gateway.exchange(client, token)).body
      vi.useFakeTimers({ toFake: ['Date'], now: (expOf(token) + 10) * 1000 })
      // The isolate reads its clock when it is created.
      const later = gateway.isolate()
      const before = gateway.originCalls()
      const refreshed = await later.request('https://gateway.test/oauth/token', {
        method: 'POST',
        headers: {
          'Content-Type': 'application/x-www-form-urlencoded',
          'CF-Connecting-IP': '192.0.2.1',
        },
        body: new URLSearchParams({
          client_id: client.id,
          client_secret: client.secret,
          grant_type: 'refresh_token',
          refresh_token,
        }).toString(),
      })
      expect(refreshed.status).toBe(400)
      expect(await refreshed.json()).toMatchObject({ error: 'invalid_grant' })
      expect(gateway.events.at(-1)?.reason).toBe('invalid_grant:refresh_token_expired')
      const headers = { Authorization: `Bearer ${body.access_token}` }
      expect((await later.request('https://gateway.test/orders', { headers })).status).toBe(401)
      expect(gateway.originCalls()).toBe(before)
    })

    test('that another client got for a login without a session begins no longer session', async () => {
      const gateway = which === 'bounded' ? bounded : lasting
      const broker = await gateway.createClient({ grants: [EXCHANGE] })
      const login = await gateway.login()
      const first = (await gateway.exchange(broker, login)).body.access_token
      expect(expOf(first)).toBeLessThanOrEqual(expOf(login))
      const client = await gateway.createClient()
      const { body } = await gateway.exchange(client, first)
      expect((await gateway.introspect(client, body.refresh_token)).body.exp).toBe(expOf(first))
    })

    test('of a session ends with that session, after exchanges by other clients as well', async () => {
      const gateway = which === 'bounded' ? bounded : lasting
      const [owner, other] = [await gateway.createClient(), await gateway.createClient()]
      const session = (await gateway.exchange(owner, await gateway.login())).body
      const { body } = await gateway.exchange(other, session.access_token)
      expect(body).not.toHaveProperty('refresh_token')
      expect(expOf(body.access_token)).toBeLessThanOrEqual(expOf(session.access_token))
      expect((await gateway.call(body.access_token)).status).toBe(200)
      expect((await gateway.revoke(owner, session.refresh_token)).status).toBe(200)
      const before = gateway.originCalls()
      expect((await gateway.call(body.access_token)).status).toBe(401)
      expect(gateway.originCalls()).toBe(before)
    })
  },
)

test('a login elsewhere outlives its token only as a session, and only if the policy sets sessionSeconds [S70]', async () => {
  const login = await lasting.login()
  const client = await lasting.createClient()
  const { body } = await lasting.exchange(client, login)
  const { exp, iat } = (await lasting.introspect(client, body.refresh_token)).body
  expect(exp - iat).toBe(SESSION_SECONDS)
  const narrow = await lasting.createClient({ grants: [EXCHANGE] })
  const token = (await lasting.exchange(narrow, login)).body.access_token
  expect(expOf(token)).toBeLessThanOrEqual(expOf(login))
})

test('an expired token within the clock tolerance cannot be exchanged [S70]', async () => {
  for (const gateway of [bounded, lasting]) {
    const client = await gateway.createClient({ grants: [EXCHANGE] })
    for (const kind of ['login', 'minted'] as const) {
      const aged =
        kind === 'login'
          ? await gateway.login({ claims: past() })
          : await gateway.sign({ sub: 'alice', client_id: 'olga', ...past() }, { typ: 'at+jwt' })
      const reply = await gateway.exchange(client, aged)
      expect([reply.status, reply.body.error]).toEqual([400, 'invalid_request'])
    }
  }
})

const past = () => ({ iat: nowSeconds() - 100, exp: nowSeconds() - 2 })
