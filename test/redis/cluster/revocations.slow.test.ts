/** Every way to end access, over a real cluster: the next request of the caller does not reach the origin. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { type Server, startGateway, type TestGateway } from '../../harness/gateway.ts'
import { startRedisCluster, type TestCluster } from '../../harness/redis-cluster.ts'
import { hasRedisServer } from '../../harness/resp-server.ts'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const LANES = 16

const policy = definePolicy({
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  limits: {
    few: { limit: 5, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
    operators: { limit: 10_000, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
  },
  features: [operators(), authorizationServer()],
  tokens: { sessionSeconds: 3_600 },
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
})

interface Caller {
  readonly credential: string
  /** Ends the access of the caller. */
  end(): Promise<unknown>
}

describe.skipIf(!hasRedisServer)('after', () => {
  let cluster: TestCluster
  let gateway: TestGateway
  let other: Server
  let operator: string
  beforeAll(async () => {
    cluster = await startRedisCluster()
    gateway = await startGateway({
      ...{ runtime: 'Node', redis: 'resp', policy, signs: true, publicUrl: 'own' },
      variables: {
        REDIS_URL: `${cluster.url}/?lanes=${LANES}`,
        REDIS_TIMEOUT_MS: '600',
        TRUSTED_PROXIES: '127.0.0.1/32',
      },
    })
    other = await gateway.another()
    operator = await gateway.token({ claims: { sub: 'olga', roles: ['operator'] } })
  })
  afterAll(async () => {
    await gateway?.close()
    await cluster?.close()
  })

  async function admin(method: string, path: string, body?: object) {
    const response = await fetch(`${gateway.url}/-/admin${path}`, {
      method,
      headers: { Authorization: `Bearer ${operator}`, 'Content-Type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    expect(response.ok, `${method} ${path}: ${response.status} ${text}`).toBe(true)
    return text === '' ? {} : JSON.parse(text)
  }

  async function form(path: string, fields: Readonly<Record<string, string>>) {
    const body = new URLSearchParams(fields)
    const response = await fetch(gateway.url + path, { method: 'POST', body })
    const text = await response.text()
    return { status: response.status, body: text === '' ? {} : JSON.parse(text) }
  }

  /** Returns the statuses of a request at each gateway, and how many reached the origin. */
  async function request(credential: string, address = '192.0.2.1') {
    const before = gateway.requests.length
    const statuses: number[] = []
    for (const { url } of [gateway, other]) {
      const headers = { Authorization: `Bearer ${credential}`, 'X-Forwarded-For': address }
      const response = await fetch(`${url}/orders`, { headers })
      await response.arrayBuffer()
      statuses.push(response.status)
    }
    return { statuses, reached: gateway.requests.length - before }
  }

  const token = async (claims: Readonly<Record<string, unknown>> = {}) => {
    const [sub, jti] = [crypto.randomUUID(), crypto.randomUUID()]
    const credential = await gateway.token({ claims: { sub, jti, roles: ['reader'], ...claims } })
    return { sub, jti, credential }
  }
  const revoke = (kind: string, value: string, more = {}) =>
    admin('POST', '/revocations', { kind, value, ...more })

  const newClient = async (tokenFormat: string) => {
    const grants = [EXCHANGE, 'refresh_token']
    const order = { name: 'app', grants, tokenFormat, roles: ['reader'] }
    const { clientId, clientSecret } = await admin('POST', '/clients', order)
    return { client_id: clientId, client_secret: clientSecret }
  }

  /** Returns the tokens of a session that a client has obtained for a user. */
  async function session(tokenFormat: string) {
    const client = await newClient(tokenFormat)
    const { sub, credential } = await token()
    const subject = { subject_token: credential, subject_token_type: ACCESS_TOKEN }
    const { status, body } = await form('/oauth/token', {
      ...{ ...client, grant_type: EXCHANGE },
      ...subject,
    })
    expect(status, JSON.stringify(body)).toBe(200)
    return { client, sub, credential: body.access_token, refreshToken: body.refresh_token }
  }

  async function apiKey() {
    const subject = crypto.randomUUID()
    const order = { name: 'x', subject, roles: ['reader'] }
    const { id, apiKey: credential } = await admin('POST', '/api-keys', order)
    return { subject, id, credential }
  }

  const WAYS: Readonly<Record<string, () => Promise<Caller>>> = {
    'the revocation of a token by its jti': async () => {
      const { credential, jti } = await token()
      return { credential, end: () => revoke('token', jti) }
    },
    'the revocation of a session': async () => {
      const { credential, sub } = await token({ sid: 'session-1' })
      return { credential, end: () => revoke('session', sub && 'session-1') }
    },
    'the revocation of a subject': async () => {
      const { credential, sub } = await token()
      return { credential, end: () => revoke('subject', sub) }
    },
    'the revocation of a client': async () => {
      const { credential } = await token({ client_id: 'client-1' })
      return { credential, end: () => revoke('client', 'client-1') }
    },
    'the revocation of a tenant': async () => {
      const { credential } = await token({ tenant: 'tenant-1' })
      return { credential, end: () => revoke('tenant', 'tenant-1') }
    },
    'the revocation of a client within a tenant': async () => {
      const { credential } = await token({ client_id: 'client-2', tenant: 'tenant-2' })
      return { credential, end: () => revoke('client', 'client-2', { tenant: 'tenant-2' }) }
    },
    'the ban of a subject': async () => {
      const { credential, sub } = await token()
      const ban = { kind: 'subject', value: sub, seconds: 60 }
      return { credential, end: () => admin('POST', '/bans', ban) }
    },
    'the end of an API key': async () => {
      const { credential, id } = await apiKey()
      return { credential, end: () => admin('DELETE', `/api-keys/${id}`) }
    },
    'the revocation of the subject of an API key': async () => {
      const { credential, subject } = await apiKey()
      return { credential, end: () => revoke('subject', subject) }
    },
    'the rotation of an API key': async () => {
      const { credential, id } = await apiKey()
      return { credential, end: () => admin('POST', `/api-keys/${id}/secret`, {}) }
    },
    'the second use of a refresh token': async () => {
      const { client, credential, refreshToken } = await session('jwt')
      const fields = { ...client, grant_type: 'refresh_token' }
      const refresh = (value: string) => form('/oauth/token', { ...fields, refresh_token: value })
      return {
        credential,
        async end() {
          const first = await refresh(refreshToken)
          const second = await refresh(first.body.refresh_token)
          expect([first.status, second.status]).toEqual([200, 200])
          expect((await refresh(refreshToken)).status).toBe(400)
        },
      }
    },
    'the revocation of a refresh token by its client': async () => {
      const { client, credential, refreshToken } = await session('jwt')
      return {
        credential,
        end: () => form('/oauth/revoke', { ...client, token: refreshToken }),
      }
    },
    'the revocation of an access token by its client': async () => {
      const { client, credential } = await session('jwt')
      return { credential, end: () => form('/oauth/revoke', { ...client, token: credential }) }
    },
    'the revocation of an opaque token by its client': async () => {
      const { client, credential } = await session('opaque')
      return { credential, end: () => form('/oauth/revoke', { ...client, token: credential }) }
    },
    'the revocation of the subject of an opaque token': async () => {
      const { credential, sub } = await session('opaque')
      return { credential, end: () => revoke('subject', sub) }
    },
    'the end of a client': async () => {
      const { client, credential } = await session('jwt')
      return { credential, end: () => admin('DELETE', `/clients/${client.client_id}`) }
    },
  }

  test.each(Object.entries(WAYS))(
    '%s, no gateway admits its next request [S92]',
    async (_, create) => {
      const { credential, end } = await create()
      expect(await request(credential)).toEqual({ statuses: [200, 200], reached: 2 })
      await end()
      const { statuses, reached } = await request(credential)
      expect(reached).toBe(0)
      for (const status of statuses) expect([401, 403]).toContain(status)
    },
  )

  test('a ban of an address, no gateway admits a caller of any lane, until it is lifted [S92]', async () => {
    const callers = await Promise.all(Array.from({ length: 2 * LANES }, () => token()))
    const address = '203.0.113.7'
    const { id } = await admin('POST', '/bans', { kind: 'address', value: address, seconds: 60 })
    for (const { credential } of callers)
      expect(await request(credential, address)).toEqual({ statuses: [403, 403], reached: 0 })
    await admin('DELETE', `/bans/${id}`)
    for (const { credential } of callers)
      expect(await request(credential, address)).toEqual({ statuses: [200, 200], reached: 2 })
  })
})
