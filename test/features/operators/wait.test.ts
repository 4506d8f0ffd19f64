import { afterAll, beforeAll, expect, test } from 'vitest'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { startGateway, type TestGateway } from './gateway.ts'

/** Long enough that an isolate that was just used has a valid view when the next request arrives. */
const BOUND_MS = 1_500

const lease = { max: 1_000, ttlMs: 10_000 }
const policy = definePolicy({
  revocation: { maxStalenessMs: BOUND_MS },
  features: [operators(), authorizationServer()],
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  limits: {
    leased: { limit: 10_000, windowSeconds: 60, by: 'subject', onUnavailable: 'deny', lease },
    operators: { limit: 10_000, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
  },
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['leased'] }],
})

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway({ policy })
})
afterAll(() => gateway.close())

const ISOLATES = [0, 1] as const

/** Lets both isolates lease units for the holder of a credential, and admit it without a call. */
async function leaseAtBoth(credential: string): Promise<void> {
  for (const at of ISOLATES)
    for (let n = 0; n < 50; n += 1) expect((await gateway.call(credential, at)).status).toBe(200)
}

/** Each call that ends access: it returns the credential, and the path that ends it. */
const ENDS = {
  'a revocation of a subject': async () => {
    const value = crypto.randomUUID()
    const body = { kind: 'subject', value }
    const credential = await gateway.token({ sub: value, roles: ['reader'] })
    return { credential, method: 'POST', path: '/revocations', body, status: 201, refused: 401 }
  },
  'a revocation of a tenant': async () => {
    const value = crypto.randomUUID()
    const body = { kind: 'tenant', value }
    const credential = await gateway.token({ roles: ['reader'], tenant: value })
    return { credential, method: 'POST', path: '/revocations', body, status: 201, refused: 401 }
  },
  'a ban': async () => {
    const value = crypto.randomUUID()
    const body = { kind: 'subject', value, seconds: 60 }
    const credential = await gateway.token({ sub: value, roles: ['reader'] })
    return { credential, method: 'POST', path: '/bans', body, status: 201, refused: 403 }
  },
  'the end of an API key': async () => {
    const order = { name: 'x', subject: crypto.randomUUID(), roles: ['reader'] }
    const { apiKey, id } = (await gateway.admin('POST', '/api-keys', order)).body
    const end = { method: 'DELETE', path: `/api-keys/${id}`, body: undefined }
    return { credential: apiKey, ...end, status: 204, refused: 401 }
  },
} as const

test.concurrent.each(Object.entries(ENDS))(
  'after %s with wait=everywhere, gateways with leased units refuse the next request',
  async (_, create) => {
    const { credential, method, path, body, status, refused } = await create()
    await leaseAtBoth(credential)
    const reply = await gateway.admin(method, `${path}?wait=everywhere`, body)
    const next = await Promise.all(ISOLATES.map((at) => gateway.call(credential, at)))
    expect(reply.status, reply.text).toBe(status)
    expect(next.map((answer) => answer.status)).toEqual([refused, refused])
  },
)

test('another value of wait is refused, and nothing is revoked', async () => {
  const sub = crypto.randomUUID()
  const credential = await gateway.token({ sub, roles: ['reader'] })
  const body = { kind: 'subject', value: sub }
  const reply = await gateway.admin('POST', '/revocations?wait=always', body)
  expect(reply.status, reply.text).toBe(422)
  expect((await gateway.call(credential)).status).toBe(200)
})
