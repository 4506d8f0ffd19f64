/** Changes that the master has stored, but that replicas have not: 503, until a repeated call has reached them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLaneAdmissionStore } from '../../../src/access/admission/redis/lane-store.ts'
import { Unavailable } from '../../../src/errors.ts'
import type { Gateway } from '../../../src/gateway/create-gateway.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { PUBLIC_URL, startGateway, type TestGateway } from '../../harness/gateway.ts'
import { withLanes } from '../../harness/lanes.ts'
import { policy } from './gateway.ts'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

/** What a row sends. */
interface Call {
  readonly method: 'DELETE' | 'POST' | 'PATCH'
  readonly path: string
  readonly body?: object | URLSearchParams
  readonly client?: { readonly clientId: string; readonly clientSecret: string }
}

describe.each([
  ['one server', 0],
  ['lanes', 4],
] as const)('%s without its replicas', (_, lanes) => {
  let gateway: TestGateway
  let app: Gateway
  let areAway = false
  /** The calls that wait for replicas, and whether each has written. */
  let waited = 0
  beforeAll(async () => {
    gateway = await startGateway({ policy, signs: true, lanes: 0 })
    const withReplicas = (server: RedisConnection): RedisConnection => ({
      ...server,
      replicasAcked: 1,
      async send(commands, { acknowledgedBy = 0, ...options } = {}) {
        const replies = await server.send(commands, options)
        if (acknowledgedBy === 0) return replies
        // What WAIT covers: a write of the same socket.
        expect(commands.at(-1)?.[0]).toBe('SET')
        waited += 1
        if (areAway) throw new Unavailable('redis', 'timeout')
        return replies
      },
    })
    app = gateway.isolate(
      policy,
      {},
      {
        ports: {
          redis:
            ({ keyPrefix, ...config }) =>
            (calls) => {
              const server = createRedisRest({ ...config, ...calls })
              return lanes > 0
                ? withLanes(withReplicas(server), lanes, keyPrefix)
                : withReplicas(server)
            },
          admissionStore: createLaneAdmissionStore,
        },
      },
    )
  })
  afterAll(() => gateway.close())

  async function send({ method, path, body, client }: Call) {
    const operator = await gateway.token({ claims: { sub: 'olga', roles: ['operator'] } })
    const basic = client && `Basic ${btoa(`${client.clientId}:${client.clientSecret}`)}`
    const isForm = body instanceof URLSearchParams
    const response = await app.fetch(
      new Request(PUBLIC_URL + path, {
        method,
        headers: {
          'cf-connecting-ip': '192.0.2.1',
          authorization: basic ?? `Bearer ${operator}`,
          ...(body && {
            'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
          }),
        },
        ...(body && { body: isForm ? body.toString() : JSON.stringify(body) }),
      }),
    )
    const text = await response.text()
    return { status: response.status, text, body: text === '' ? {} : JSON.parse(text) }
  }
  const admin = (method: Call['method'], path: string, body?: object): Call => ({
    ...{ method, path: `/-/admin${path}` },
    ...(body && { body }),
  })
  async function created(path: string, body: object) {
    const reply = await send(admin('POST', path, body))
    expect(reply.status, reply.text).toBe(201)
    return reply.body
  }
  const newClient = (more: object = {}) =>
    created('/clients', { name: 'app', grants: ['refresh_token', EXCHANGE], ...more })
  async function newSession() {
    const client = await newClient()
    const fields = {
      ...{ grant_type: EXCHANGE, subject_token_type: ACCESS_TOKEN },
      subject_token: await gateway.token({ claims: { sub: crypto.randomUUID() } }),
    }
    const body = new URLSearchParams(fields)
    const reply = await send({ method: 'POST', path: '/oauth/token', body, client })
    expect(reply.status, reply.text).toBe(200)
    return { client, ...reply.body }
  }
  async function revokes(kind: 'refresh_token' | 'access_token'): Promise<Call> {
    const { client, [kind]: token } = await newSession()
    const body = new URLSearchParams({ token })
    return { method: 'POST', path: '/oauth/revoke', body, client }
  }
  const user = () => ({ kind: 'subject', value: crypto.randomUUID() })

  const rows: Readonly<Record<string, () => Promise<Call>>> = {
    'a revocation': async () => admin('POST', '/revocations', user()),
    'its end': async () =>
      admin('DELETE', `/revocations/${(await created('/revocations', user())).id}`),
    'a ban': async () => admin('POST', '/bans', { ...user(), seconds: 60 }),
    'the end of a ban': async () =>
      admin('DELETE', `/bans/${(await created('/bans', { ...user(), seconds: 60 })).id}`),
    'an override': async () =>
      admin('POST', '/limits/overrides', { limit: 'few', value: 'alice', requests: 5 }),
    'the end of an override': async () => {
      const body = { limit: 'few', value: crypto.randomUUID(), requests: 5 }
      return admin('DELETE', `/limits/overrides/${(await created('/limits/overrides', body)).id}`)
    },
    'the plan of a tenant': async () =>
      admin('POST', '/plans/assignments', { plan: 'pro', by: 'tenant', value: 'acme' }),
    'the end of a plan': async () => {
      const body = { plan: 'pro', by: 'tenant', value: crypto.randomUUID() }
      return admin('DELETE', `/plans/assignments/${(await created('/plans/assignments', body)).id}`)
    },
    'an API key': async () => admin('POST', '/api-keys', { name: 'k', subject: 'robot' }),
    'another end of an API key': async () =>
      admin('PATCH', `/api-keys/${(await created('/api-keys', { name: 'k', subject: 'r' })).id}`, {
        expiresInSeconds: 600,
      }),
    'another secret of an API key': async () =>
      admin(
        'POST',
        `/api-keys/${(await created('/api-keys', { name: 'k', subject: 'r' })).id}/secret`,
        {},
      ),
    'the end of an API key': async () =>
      admin('DELETE', `/api-keys/${(await created('/api-keys', { name: 'k', subject: 'r' })).id}`),
    'another secret of a client': async () =>
      admin('POST', `/clients/${(await newClient()).clientId}/secret`, {}),
    'the end of a client': async () => admin('DELETE', `/clients/${(await newClient()).clientId}`),
    'a logout': () => revokes('refresh_token'),
    'the revocation of an access token': () => revokes('access_token'),
    'a refresh': async () => {
      const { client, refresh_token } = await newSession()
      const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token })
      return { method: 'POST', path: '/oauth/token', body, client }
    },
  }

  test.each(Object.keys(rows))('%s is 503, and a repeated call reaches them', async (name) => {
    areAway = false
    const call = (await rows[name]?.()) ?? admin('POST', '')
    areAway = true
    for (const attempt of ['the first call', 'a repeated call']) {
      waited = 0
      const { status, text } = await send(call)
      expect(status, `${attempt}: ${text}`).toBe(503)
      expect(waited, attempt).toBeGreaterThan(0)
    }
    areAway = false
    waited = 0
    const { status, text } = await send(call)
    expect(status, text).toBeLessThan(300)
    expect(waited).toBeGreaterThan(0)
  })

  test('a record whose end is incomplete stays no longer than it would have', async () => {
    const { id } = await created('/bans', { ...user(), seconds: 20 })
    areAway = true
    expect((await send(admin('DELETE', `/bans/${id}`))).status).toBe(503)
    areAway = false
    const [name = ''] = await gateway.redis.direct.keys(`pc:*${id}`)
    const life = await gateway.redis.direct.ttl(name)
    expect(life).toBeGreaterThan(0)
    expect(life).toBeLessThanOrEqual(20)
  })

  test('a refresh that they do not have consumes no token, and a retry gets what another one got', async () => {
    const { client, refresh_token } = await newSession()
    const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token })
    const refresh = () => send({ method: 'POST', path: '/oauth/token', body, client })
    const families = async () => {
      const names = await gateway.redis.direct.keys('pc:*refresh:*')
      return Promise.all(names.map((name) => gateway.redis.direct.hgetall(name)))
    }
    const before = await families()
    areAway = true
    expect((await refresh()).status).toBe(503)
    areAway = false
    await expect.poll(families).toEqual(before)
    // The second one may find that the first has used the token.
    areAway = true
    const both = await Promise.all([refresh(), refresh()])
    expect(both.map(({ status }) => status)).toEqual([503, 503])
    areAway = false
    await expect.poll(families).toEqual(before)
    const [one, two] = [(await refresh()).body, (await refresh()).body]
    expect(two.refresh_token).toBe(one.refresh_token)
    areAway = true
    expect((await refresh()).status).toBe(503)
    areAway = false
    expect((await refresh()).body.refresh_token).toBe(one.refresh_token)
  })
})
