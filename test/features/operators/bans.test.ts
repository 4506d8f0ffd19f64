import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ISSUER, REMOTE_ISSUER, startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

const ban = async (body: object) => {
  const reply = await gateway.admin('POST', '/bans', { seconds: 600, ...body })
  expect(reply.status, reply.text).toBe(201)
  return reply.body
}
const lift = async (id: string) =>
  expect((await gateway.admin('DELETE', `/bans/${id}`)).status).toBe(204)

test('a banned subject is refused in both isolates with the end of the ban, and admitted after the ban is lifted', async () => {
  const sub = crypto.randomUUID()
  const token = await gateway.token({ sub })
  expect((await gateway.call(token, 1)).status).toBe(200)
  const { id, expiresAt, createdAt } = await ban({
    kind: 'subject',
    value: sub,
    reason: 'scraping',
  })
  expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(600_000)
  const before = gateway.originCalls()
  for (const at of [0, 1] as const) {
    const reply = await gateway.call(token, at)
    expect(reply.status).toBe(403)
    expect(reply.body.code).toBe('banned')
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(590)
  }
  expect(gateway.originCalls()).toBe(before)
  await lift(id)
  expect((await gateway.call(token, 0)).status).toBe(200)
  expect((await gateway.call(token, 1)).status).toBe(200)
})

test('a ban of a subject applies only to the issuer that it names', async () => {
  const sub = crypto.randomUUID()
  const [here, there] = [await gateway.token({ sub }), await gateway.token({ sub }, REMOTE_ISSUER)]
  await ban({ kind: 'subject', value: sub, issuer: ISSUER })
  expect((await gateway.call(here)).status).toBe(403)
  expect((await gateway.call(there)).status).toBe(200)
})

describe('an address is banned in the form that limits count it [S56]:', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2::42', '2001:db8:1:2:ffff::1', '2001:db8:1:2::/64'],
    ['2001:db8:1:3::/64', '2001:db8:1:3::9', '2001:db8:1:3::/64'],
    ['::ffff:198.51.100.9', '198.51.100.9', '198.51.100.9'],
  ])('%s covers %s', async (value, address, group) => {
    const { id, ...view } = await ban({ kind: 'address', value })
    expect(view).toMatchObject({ kind: 'address', value: group, issuer: null, createdBy: 'olga' })
    const request = { headers: { 'CF-Connecting-IP': address } }
    expect((await gateway.send('/public', request)).status).toBe(403)
    expect((await gateway.send('/public')).status).not.toBe(403)
    await lift(id)
    expect((await gateway.send('/public', request)).status).toBe(200)
  })

  test.each([
    '203.0.113',
    '0177.0.0.1',
    '203.0.113.0/24',
    'localhost',
    '2001:db8::/32',
    '1.2.3.4,5.6.7.8',
  ])('%s is 422', async (value) => {
    const reply = await gateway.admin('POST', '/bans', { kind: 'address', value, seconds: 9 })
    expect(reply.status).toBe(422)
    expect(reply.body.errors).toMatchObject([{ in: 'body', path: '/value' }])
  })
})

test('of two bans of one subject the longer one applies, whichever is lifted first', async () => {
  const sub = crypto.randomUUID()
  const token = await gateway.token({ sub })
  const long = await ban({ kind: 'subject', value: sub, seconds: 5_000 })
  const short = await ban({ kind: 'subject', value: sub, seconds: 50 })
  const retryAfter = async () => Number((await gateway.call(token)).headers.get('retry-after'))
  expect(await retryAfter()).toBeGreaterThan(4_900)
  await lift(long.id)
  expect(await retryAfter()).toBeLessThanOrEqual(50)
  await lift(short.id)
  expect((await gateway.call(token)).status).toBe(200)
})

test('a ban written to Redis by hand is not lifted together with a listed one', async () => {
  const sub = crypto.randomUUID()
  const token = await gateway.token({ sub })
  const key = `pc:ban:subject:${encodeURIComponent(ISSUER)}:${sub}`
  await gateway.redis.direct.set(key, Math.floor(Date.now() / 1000) + 300, 'EX', 300)
  const { id } = await ban({ kind: 'subject', value: sub, seconds: 900 })
  await lift(id)
  expect((await gateway.call(token)).status).toBe(403)
  expect(await gateway.redis.direct.ttl(key)).toBeLessThanOrEqual(300)
})

test('the list shows active bans, newest first, and every key expires with its ban', async () => {
  await ban({ kind: 'address', value: '203.0.113.99', seconds: 77 })
  const { bans } = (await gateway.admin('GET', '/bans?limit=1')).body
  expect(bans).toHaveLength(1)
  expect(bans[0]).toMatchObject({ value: '203.0.113.99', reason: null })
  for (const key of [
    'pc:ban:address:203.0.113.99',
    'pc:holders:pc:ban:address:203.0.113.99',
    `pc:ban-record:${bans[0].id}`,
  ]) {
    expect(await gateway.redis.direct.ttl(key)).toBeGreaterThan(70)
    expect(await gateway.redis.direct.ttl(key)).toBeLessThanOrEqual(77)
  }
  expect((await gateway.admin('DELETE', `/bans/${crypto.randomUUID()}`)).status).toBe(404)
})
