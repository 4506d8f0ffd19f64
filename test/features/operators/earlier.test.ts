/** What an order says of an earlier one of the same: revocations, bans and overrides. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PUBLIC_URL, REMOTE_ISSUER, startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
let ofAcme: string
beforeAll(async () => {
  gateway = await startGateway()
  ofAcme = await gateway.token({ sub: 'tom', roles: ['operator'], tenant: 'acme' })
})
afterAll(() => gateway.close())

async function order(path: string, body: object, as = gateway.operator) {
  const reply = await gateway.admin('POST', path, body, { as })
  expect(reply.status, reply.text).toBe(201)
  return reply.body
}
const unique = () => crypto.randomUUID()

interface Made {
  readonly createdAt: string
  readonly expiresAt: string
}
const revocation = (value: string) => ({ kind: 'subject', value })
const ban = (value: string) => ({ kind: 'subject', value, seconds: 600 })
const override = (value: string) => ({ limit: 'few', value, requests: 5 })
const ORDERS = [
  ['/revocations', 'earlier', revocation, ({ createdAt }: Made) => ({ until: createdAt })],
  ['/bans', 'earlier', ban, ({ expiresAt }: Made) => ({ until: expiresAt })],
  ['/limits/overrides', 'replaces', override, () => ({ requests: 5, expiresAt: null })],
] as const

describe.each(ORDERS)('POST %s', (path, member, bodyOf, expectedOf) => {
  test.each([
    ['without a tenant', () => gateway.operator],
    ['of a tenant', () => ofAcme],
  ])('of an operator %s: the first order has none, the second one the first', async (_, asOf) => {
    const body = bodyOf(unique())
    const first = await order(path, body, asOf())
    expect(first).toHaveProperty(member, null)
    const second = await order(path, body, asOf())
    expect(second[member]).toEqual(expectedOf(first))
  })

  test('an order of a tenant is none of the platform, nor of another caller', async () => {
    const value = unique()
    await order(path, bodyOf(value), ofAcme)
    expect(await order(path, bodyOf(value))).toHaveProperty(member, null)
    expect(await order(path, bodyOf(unique()), ofAcme)).toHaveProperty(member, null)
  })

  test('the list of orders, and the one that was found, have no such member', async () => {
    await order(path, bodyOf(unique()))
    const list = path.startsWith('/limits') ? '/limits' : path
    expect((await gateway.admin('GET', list)).text).not.toContain(`"${member}"`)
  })
})

test.each([
  ['/revocations', revocation],
  ['/bans', ban],
])(
  '%s of one of two issuers is no earlier order of both, and one of both is one of it',
  async (path, bodyOf) => {
    const body = bodyOf(unique())
    const ofOne = { ...body, issuer: REMOTE_ISSUER }
    await order(path, ofOne)
    expect(await order(path, body)).toHaveProperty('earlier', null)
    for (const again of [body, ofOne])
      expect((await order(path, again)).earlier).toEqual({ until: expect.any(String) })
  },
)

test('an override of both issuers replaces what one of them had, whichever it is', async () => {
  for (const issuer of [REMOTE_ISSUER, PUBLIC_URL]) {
    const value = unique()
    const ofOne = { ...override(value), issuer, requests: 7, expiresInSeconds: 600 }
    const { expiresAt } = await order('/limits/overrides', ofOne)
    const both = await order('/limits/overrides', override(value))
    expect(both.replaces).toEqual({ requests: 7, expiresAt })
    const again = await order('/limits/overrides', ofOne)
    expect(again.replaces).toEqual({ requests: 5, expiresAt: null })
  }
})

test('a single token that is revoked has no end, and a longer ban keeps its own', async () => {
  const token = { kind: 'token', value: unique() }
  expect(await order('/revocations', token)).toHaveProperty('earlier', null)
  expect((await order('/revocations', token)).earlier).toEqual({ until: null })
  const value = unique()
  const { expiresAt } = await order('/bans', ban(value))
  expect((await order('/bans', { ...ban(value), seconds: 60 })).earlier.until).toBe(expiresAt)
  expect((await order('/bans', ban(value))).earlier.until).toBe(expiresAt)
})

test('an order that has ended is no earlier one', async () => {
  for (const [path, member, bodyOf] of ORDERS) {
    const body = bodyOf(unique())
    const { id } = await order(path, body)
    expect((await gateway.admin('DELETE', `${path}/${id}`)).status).toBe(204)
    expect(await order(path, body)).toHaveProperty(member, null)
  }
})

test.each(ORDERS)(
  '%s is carried out if the earlier order cannot be read',
  async (path, member, bodyOf) => {
    const sub = unique()
    const token = await gateway.token({ sub, roles: ['reader'] })
    const body = { ...bodyOf(sub), ...(member === 'replaces' && { requests: 1 }) }
    await order(path, body)
    const isLookUp = member === 'replaces' ? /"GET","pc:[^"]*limit-owner:/ : /"MGET"/
    let lookUps = 0
    gateway.redis.setAnswering((commands) => {
      if (!isLookUp.test(commands)) return true
      lookUps += 1
      return false
    })
    const made = await order(path, body)
    expect(lookUps).toBeGreaterThan(0)
    expect(made).not.toHaveProperty(member)
    gateway.redis.setAnswering(true)
    const list = path.startsWith('/limits') ? '/limits' : path
    expect((await gateway.admin('GET', list)).text).toContain(made.id)
    const call = async (at: 0 | 1) => (await gateway.call(token, at, '/few')).status
    if (member === 'replaces') expect([await call(0), await call(0)]).toEqual([200, 429])
    else expect([await call(0), await call(1)]).toEqual(Array(2).fill(path === '/bans' ? 403 : 401))
  },
)
