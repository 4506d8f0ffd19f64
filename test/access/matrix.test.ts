/** Every set of roles of the shipped policy against every path and method, with signed tokens. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import policy from '#policy'
import model from '../../portcullis.model.json' with { type: 'json' }
import { createRelationTuples } from '../../src/access/relations/redis/tuples.ts'
import type { RelationTuples } from '../../src/access/relations/store.ts'
import { relations } from '../../src/features/relations/index.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { ISSUER } from '../harness/issuer.ts'
import { startGateway, type TestGateway } from '../rows/gateway.ts'

const ID = '0190a4b0-5c1e-7f3a-8b2d-1c2d3e4f5a6b'
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
const ORDER = '{"item":"nails","quantity":1}'
const REPORT = '{"from":"2026-01-01","to":"2026-01-31"}'
const ROLES = ['reader', 'writer', 'admin', 'operator']
const ANY_CALLER = ['any caller']

/**
 * The permitted calls by the documentation's table, not by the policy: `method path` of a valid
 * request, and the roles of which one is sufficient.
 */
const ORACLE: Readonly<Record<string, readonly string[]>> = {
  'GET /public/ping': ANY_CALLER,
  'GET /orders': ['reader', 'writer', 'admin'],
  [`GET /orders/${ID}`]: ['reader', 'writer', 'admin'],
  'POST /orders': ['writer', 'admin'],
  [`GET /orders/${ID}/invoice`]: ['reader', 'writer', 'admin'],
  [`POST /orders/${ID}/approval`]: ['writer', 'admin'],
  [`DELETE /orders/${ID}`]: ['admin'],
  'POST /reports': ['admin'],
}
/** Routes that also require a relation. The callers of the matrix are approvers of the order. */
const RELATED = [`GET /orders/${ID}/invoice`, `POST /orders/${ID}/approval`]
const BODIES: Readonly<Record<string, string>> = { 'POST /orders': ORDER, 'POST /reports': REPORT }
const PATHS = [...new Set(Object.keys(ORACLE).map((row) => row.split(' ')[1] ?? ''))]

let gateway: TestGateway
let tuples: RelationTuples
let addresses = 0
/** A new address for each request, so that limits by address do not interfere. */
const newAddress = () => `10.1.${++addresses >> 8}.${addresses & 255}`

beforeAll(async () => {
  // Tuples name the subjects of this issuer.
  gateway = await startGateway({
    ...policy,
    relations: relations({ model, issuers: [ISSUER] }).compile(),
  })
  const { url, token } = gateway.redis
  tuples = createRelationTuples(createRedisRest({ url, token, timeoutMs: 20_000 }), ['order'])
})
afterAll(() => gateway?.close())

/** Writes the tuple of an approver of the order. An approver can also view the order. */
async function approve(subject: string): Promise<void> {
  const tuple = { object: `order:${ID}`, relation: 'approver', subject: `user:${subject}` }
  await tuples.write(null, { writes: [tuple], deletes: [] })
}

/** Returns the expected status of a request with these roles. HEAD follows GET. */
function expected(method: string, path: string, roles: readonly string[]): number {
  const enough = ORACLE[`${method === 'HEAD' ? 'GET' : method} ${path}`]
  if (enough === undefined) return 405
  return enough === ANY_CALLER || roles.some((role) => enough.includes(role)) ? 200 : 403
}

async function statusOf(method: string, path: string, token: string | undefined): Promise<number> {
  const before = gateway.reached.length
  const body = BODIES[`${method} ${path}`]
  const status = await gateway.send({ method, path, token, body, address: newAddress() })
  // Exactly the admitted requests reach the origin.
  expect(gateway.reached.slice(before)).toEqual(status === 200 ? [`${method} ${path}`] : [])
  return status
}

function subsetsOf(roles: readonly string[]): string[][] {
  return roles.reduce<string[][]>(
    (sets, role) => sets.concat(sets.map((set) => [...set, role])),
    [[]],
  )
}

describe('the matrix of the shipped policy [S64]', () => {
  test('the oracle has each role and each route of the policy [S64]', () => {
    expect([...policy.roles.keys()]).toEqual(ROLES)
    const routed = policy.routes.map(({ method, path }) => `${method} ${path.replace(':id', ID)}`)
    expect(Object.keys(ORACLE).sort()).toEqual(routed.sort())
  })

  test.each(subsetsOf(ROLES).map((roles) => [roles.join('+') || 'none', roles]))(
    'roles %s may do on every path, with every method, what the table permits and no more [S64]',
    async (_, roles) => {
      const sub = `approver-${crypto.randomUUID()}`
      await approve(sub)
      const token = await gateway.token({ roles, sub })
      for (const path of PATHS) {
        for (const method of METHODS) {
          const status = await statusOf(method, path, token)
          expect(status, `${method} ${path}`).toBe(expected(method, path, roles as string[]))
        }
      }
    },
  )

  test('without the relation no role gives access to a route that requires one [S64]', async () => {
    const token = await gateway.token({ roles: ROLES })
    for (const row of RELATED) {
      const [method = '', path = ''] = row.split(' ')
      expect(await statusOf(method, path, token), row).toBe(403)
    }
  })

  test('without a token only public routes are served [S64]', async () => {
    for (const row of Object.keys(ORACLE)) {
      const [method = '', path = ''] = row.split(' ')
      expect(await statusOf(method, path, undefined), row).toBe(
        ORACLE[row] === ANY_CALLER ? 200 : 401,
      )
    }
  })

  test.each<[string, unknown]>([
    ['of another case', ['Admin', 'READER']],
    ['with spaces', ['admin ', ' reader', 'reader\u00a0']],
    ['with commas', ['reader,admin']],
    ['with a scope’s separator', ['reader admin']],
    ['that are patterns', ['*', 'orders:*', 'orders:read']],
    ['of an object’s prototype', ['constructor', '__proto__', 'toString', 'hasOwnProperty']],
    ['of a tenant', ['acme/admin', 'admin@acme', 'tenant:admin']],
    ['in look-alike letters', ['\u0430dmin', 're\u0430der']],
    ['that are empty', ['']],
    ['in an empty list', []],
    ['in a list of lists', [['admin']]],
    ['in an object', { admin: true }],
    ['that are a number', 1],
    ['that are true', true],
    ['in one text', 'reader admin'],
    ['in one text with commas', 'reader,admin'],
    ['in JSON in a text', '["admin"]'],
  ])('roles %s grant nothing [S64]', async (_, roles) => {
    const token = await gateway.token({ roles })
    for (const row of Object.keys(ORACLE)) {
      const [method = '', path = ''] = row.split(' ')
      if (ORACLE[row] === ANY_CALLER) continue
      // 401 for a malformed claim, 403 for one that grants no permission.
      expect([401, 403], row).toContain(await statusOf(method, path, token))
    }
  })

  test('a single role may be a string [S64]', async () => {
    const token = await gateway.token({ roles: 'reader' })
    expect(await statusOf('GET', '/orders', token)).toBe(200)
    expect(await statusOf('POST', '/orders', token)).toBe(403)
  })
})
