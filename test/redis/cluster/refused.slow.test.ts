/**
 * What ends the access of a caller, over lanes: every isolate refuses the next request, and it does not reach
 * the origin. Each test has a caller in each lane. A lane is only a prefix, so one server has all of them.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { laneIndex } from '../../../src/redis/lanes.ts'
import {
  type CodeGateway,
  newVerifier,
  startCodeGateway,
} from '../../features/authorization-code/code-gateway.ts'
import { openSession, SIGN_IN_VARIABLES } from '../../features/operators/sessions.ts'
import { CAEP, RISC, userOf } from '../../features/signals/transmitter.ts'
import { startWorld, type World } from '../../features/signals/world.ts'
import { newAddress } from '../../harness/address.ts'
import { PUBLIC_URL, sendTo, startGateway, type TestGateway } from '../../harness/gateway.ts'
import { ISSUER, mint } from '../../harness/issuer.ts'

const LANES = 4

/** Returns a new name in each lane. */
function namesOfLanes(): readonly string[] {
  const names = new Map<number, string>()
  while (names.size < LANES) {
    const name = crypto.randomUUID()
    names.set(laneIndex(name, LANES), name)
  }
  return [...names.values()]
}

const policy = definePolicy({
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  features: [operators(), authorizationServer(), signIn()],
  abuse: { bans: { violations: 1, seconds: 60 } },
  limits: { once: { limit: 1, windowSeconds: 3_600, by: 'subject', onUnavailable: 'deny' } },
  routes: [
    { method: 'GET', path: '/orders', permission: 'orders:read', session: 'browser' },
    { method: 'GET', path: '/once', permission: 'orders:read', limits: ['once'] },
  ],
})

describe('operators, sessions and automatic bans', () => {
  let gateway: TestGateway
  let isolates: readonly ReturnType<TestGateway['isolate']>[]
  let operator: string
  beforeAll(async () => {
    gateway = await startGateway({
      policy,
      lanes: LANES,
      signs: true,
      variables: SIGN_IN_VARIABLES,
      issuers: ({ publicJwk }) => [
        {
          issuer: ISSUER,
          audience: PUBLIC_URL,
          algorithms: ['ES256'],
          jwks: { keys: [publicJwk] },
        },
      ],
    })
    isolates = [gateway.isolate(), gateway.isolate()]
    operator = await gateway.token({ claims: { sub: 'olga', roles: ['operator'] } })
  })
  afterAll(() => gateway?.close())

  /** Sends a request to an isolate, and waits for the work behind its response. */
  async function send(path: string, headers: HeadersInit, init: RequestInit = {}, at = 0) {
    const request = new Request(PUBLIC_URL + path, { redirect: 'manual', ...init, headers })
    if (!request.headers.has('cf-connecting-ip'))
      request.headers.set('cf-connecting-ip', newAddress())
    const isolate = isolates[at]
    if (isolate === undefined) throw new Error('there is no such isolate')
    const response = await sendTo(isolate, request)
    return { status: response.status, text: await response.text() }
  }
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

  /** Returns the status of a request at each isolate, and whether it reached the origin. */
  async function read(headers: HeadersInit, path = '/orders') {
    const before = gateway.requests.length
    const replies = [await send(path, headers), await send(path, headers, {}, 1)]
    return [...replies.map(({ status }) => status), gateway.requests.length - before]
  }
  const ADMITTED = [200, 200, 2]
  const REVOKED = [401, 401, 0]
  const BANNED = [403, 403, 0]

  async function admin(method: string, path: string, body?: object) {
    const type = { 'content-type': 'application/json' }
    const reply = await send(
      `/-/admin${path}`,
      { ...bearer(operator), ...(body && type) },
      { method, ...(body && { body: JSON.stringify(body) }) },
    )
    expect([200, 201, 204], reply.text).toContain(reply.status)
    return reply.text === '' ? undefined : JSON.parse(reply.text)
  }

  test.each([
    ['token', 'jti'],
    ['session', 'sid'],
    ['subject', 'sub'],
    ['client', 'client_id'],
    ['tenant', 'tenant'],
  ])(
    'a revocation of a %s refuses its callers of all lanes, and no others [S30]',
    async (kind, claim) => {
      const value = crypto.randomUUID()
      const others = await Promise.all(
        namesOfLanes().map((sub) => gateway.token({ claims: { sub } })),
      )
      const subjects = kind === 'subject' ? [value] : namesOfLanes()
      const own = await Promise.all(
        subjects.map((sub) => gateway.token({ claims: { sub, [claim]: value } })),
      )
      for (const token of [...own, ...others]) expect(await read(bearer(token))).toEqual(ADMITTED)
      const { id } = await admin('POST', '/revocations', { kind, value })
      for (const token of own) expect(await read(bearer(token))).toEqual(REVOKED)
      for (const token of others) expect(await read(bearer(token))).toEqual(ADMITTED)
      await admin('DELETE', `/revocations/${id}`)
      // An isolate may remember the refusal of one token for 10 s.
      if (kind !== 'token')
        for (const token of own) expect(await read(bearer(token))).toEqual(ADMITTED)
    },
  )

  test('the end of an API key, and of an opaque token, refuses it [S30]', async () => {
    for (const subject of namesOfLanes()) {
      const order = { name: 'robot', subject, roles: ['reader'] }
      const { id, apiKey } = await admin('POST', '/api-keys', order)
      expect(await read(bearer(apiKey))).toEqual(ADMITTED)
      await admin('DELETE', `/api-keys/${id}`)
      expect(await read(bearer(apiKey))).toEqual(REVOKED)
      const opaque = await admin('POST', '/tokens', {
        subject,
        roles: ['reader'],
        format: 'opaque',
      })
      expect(await read(bearer(opaque.token))).toEqual(ADMITTED)
      await admin('POST', '/revocations', { kind: 'subject', value: subject })
      expect(await read(bearer(opaque.token))).toEqual(REVOKED)
    }
  })

  test('a ban of an address, and of a subject, refuses it in all lanes until it is lifted', async () => {
    const address = newAddress()
    const tokens = new Map<string, string>()
    for (const sub of namesOfLanes()) tokens.set(sub, await gateway.token({ claims: { sub } }))
    const { id } = await admin('POST', '/bans', { kind: 'address', value: address, seconds: 60 })
    for (const token of tokens.values()) {
      expect(await read({ ...bearer(token), 'cf-connecting-ip': address })).toEqual(BANNED)
      expect(await read(bearer(token))).toEqual(ADMITTED)
    }
    await admin('DELETE', `/bans/${id}`)
    for (const [value, token] of tokens) {
      expect(await read({ ...bearer(token), 'cf-connecting-ip': address })).toEqual(ADMITTED)
      await admin('POST', '/bans', { kind: 'subject', value, seconds: 60 })
      expect(await read(bearer(token))).toEqual(BANNED)
    }
  })

  test('an automatic ban of a subject is in force in its lane, and one of an address in all of them', async () => {
    for (const sub of namesOfLanes()) {
      const token = await gateway.token({ claims: { sub } })
      for (let sent = 0; sent < 2; sent++) await send('/once', bearer(token))
      expect(await read(bearer(token))).toEqual(BANNED)
    }
    const address = newAddress()
    const at = { 'cf-connecting-ip': address }
    await send('/orders', { ...at, ...bearer('a.b.c') })
    for (const sub of namesOfLanes()) {
      const token = await gateway.token({ claims: { sub } })
      expect(await read({ ...at, ...bearer(token) })).toEqual(BANNED)
      expect(await read(bearer(token))).toEqual(ADMITTED)
    }
  })

  test('a sign-out, and a logout by the provider, end a browser session [S76]', async () => {
    for (const subject of namesOfLanes()) {
      const person = { subject, roles: ['reader'] }
      const cookies: string[] = []
      for (let opened = 0; opened < 3; opened++)
        cookies.push(await openSession(gateway.connection, PUBLIC_URL, person))
      const [first = '', second = '', third = ''] = cookies
      for (const cookie of cookies) expect(await read({ cookie })).toEqual(ADMITTED)
      const origin = PUBLIC_URL
      const out = await send('/oauth/sign-out', { cookie: first, origin }, { method: 'POST' })
      expect(out.status, out.text).toBe(303)
      expect(await read({ cookie: first })).toEqual(REVOKED)
      expect(await read({ cookie: second })).toEqual(ADMITTED)
      const nowSeconds = Math.floor(Date.now() / 1000)
      const logout = await mint(gateway.key, {
        header: { typ: 'logout+jwt' },
        claims: {
          ...{ aud: 'gateway', sub: subject, iat: nowSeconds, exp: nowSeconds + 120 },
          events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
        },
      })
      const reply = await send(
        '/oauth/backchannel-logout',
        { 'content-type': 'application/x-www-form-urlencoded' },
        { method: 'POST', body: `logout_token=${logout}` },
      )
      expect(reply.status, reply.text).toBe(200)
      for (const cookie of [second, third]) expect(await read({ cookie })).toEqual(REVOKED)
    }
  })
})

describe('sessions of clients', () => {
  let gateway: CodeGateway
  let client: string
  beforeAll(async () => {
    gateway = await startCodeGateway({}, {}, [], {}, LANES)
    client = await gateway.createClient()
  })
  afterAll(() => gateway?.close())

  async function expectEnded(accessToken: string) {
    const before = gateway.originCalls()
    expect((await gateway.call(accessToken)).status).toBe(401)
    expect(gateway.originCalls()).toBe(before)
  }

  test('a second use of a code, and the reuse of a refresh token, end the session [S77]', async () => {
    for (const subject of namesOfLanes())
      for (const replays of ['code', 'refresh token']) {
        const verifier = newVerifier()
        const request = gateway.requestOf(client, verifier)
        const code = await gateway.codeFor(request, gateway.signIn({ subject }))
        const { body } = await gateway.redeem(client, code, verifier)
        expect((await gateway.call(body.access_token)).status).toBe(200)
        const tokens = [body]
        if (replays === 'code') await gateway.redeem(client, code, verifier)
        else {
          for (let used = 0; used < 2; used++)
            tokens.push((await gateway.refresh(client, tokens.at(-1)?.refresh_token)).body)
          expect((await gateway.call(tokens[2]?.access_token)).status).toBe(200)
          expect((await gateway.refresh(client, body.refresh_token)).status).toBe(400)
        }
        for (const { access_token } of tokens) await expectEnded(access_token)
        const again = await gateway.refresh(client, tokens.at(-1)?.refresh_token)
        expect(again.body.error).toBe('invalid_grant')
      }
  })
})

describe('signals', () => {
  let world: World
  beforeAll(async () => {
    world = await startWorld(LANES)
  })
  afterAll(() => world?.close())

  test('about a session and an account refuse them in every isolate, until the account is enabled again', async () => {
    const isolates = [world.isolate(), world.isolate()]
    for (const sub of namesOfLanes()) {
      const token = await world.token({ sub })
      const signal = async (type: string, subject: unknown = userOf(sub)) => {
        const response = await isolates[0]?.push(await world.event(type, subject))
        expect(response?.status).toBe(202)
      }
      const expectAll = async (current: string, status: number) => {
        const before = world.reached.length
        for (const isolate of isolates) expect((await isolate.read(current)).status).toBe(status)
        expect(world.reached.length - before).toBe(status === 200 ? isolates.length : 0)
      }
      await expectAll(token, 200)
      const session = await world.token({ sub, sid: sub })
      await expectAll(session, 200)
      await signal(`${CAEP}session-revoked`, {
        ...{ format: 'complex', user: userOf(sub) },
        session: { format: 'opaque', id: sub },
      })
      await expectAll(session, 401)
      await expectAll(token, 200)
      // Issued after the signal.
      const fresh = await world.token({ sub, iat: Math.floor(Date.now() / 1000) + 4 })
      await signal(`${RISC}account-disabled`)
      await expectAll(token, 401)
      await expectAll(fresh, 403)
      await signal(`${RISC}account-enabled`)
      await expectAll(fresh, 200)
    }
  })
})
