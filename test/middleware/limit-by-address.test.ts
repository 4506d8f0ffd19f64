/** The budget that an anonymous request spends, through a whole gateway. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { definePolicy } from '../../src/policy/policy.ts'
import { startGateway, type TestGateway } from '../rows/gateway.ts'

const LIMIT = 2
const policy = definePolicy({
  roles: {},
  limits: {
    few: { limit: LIMIT, windowSeconds: 86_400, by: 'address', onUnavailable: 'deny' },
  },
  routes: [{ method: 'GET', path: '/public', anonymous: true, limits: ['few'] }],
})
const CLAIMS = ['X-Forwarded-For', 'X-Real-IP', 'Forwarded', 'True-Client-IP', 'Client-IP']

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway(policy)
})
afterAll(() => gateway?.close())

const statuses = async (sent: readonly (readonly [string | undefined, object?])[]) => {
  const seen: number[] = []
  const before = gateway.reached.length
  for (const [address, headers = {}] of sent)
    seen.push(await gateway.send({ path: '/public', address, headers: { ...headers } }))
  expect(gateway.reached.length - before).toBe(seen.filter((status) => status === 200).length)
  return seen
}
/** Claims a new address in each header that proxies write. */
const claiming = (host: number) =>
  Object.fromEntries(CLAIMS.map((name) => [name, `198.51.100.${host}`]))

test('a new X-Forwarded-For in each request spends the same budget [S56]', async () => {
  const sent = [1, 2, 3, 4].map((host) => ['203.0.113.1', claiming(host)] as const)
  expect(await statuses(sent)).toEqual([200, 200, 429, 429])
  expect(await statuses([['203.0.113.2', claiming(1)]])).toEqual([200])
})

test('an IPv6 network has one budget, and its neighbor another [S56]', async () => {
  const network = ['2001:db8:1:2::1', '2001:DB8:1:2:ffff::2', '2001:db8:1:2:3:4:5:6']
  expect(await statuses(network.map((address) => [address]))).toEqual([200, 200, 429])
  expect(await statuses([['2001:db8:1:3::1']])).toEqual([200])
})

test('an IPv4-mapped IPv6 address has the budget of the IPv4 address [S56]', async () => {
  const spelled = ['203.0.113.9', '::ffff:203.0.113.9', '::FFFF:cb00:7109']
  expect(await statuses(spelled.map((address) => [address]))).toEqual([200, 200, 429])
})

test('behind a NAT64, each client has the budget of its IPv4 address [S56]', async () => {
  const first = ['64:ff9b::203.0.113.10', '64:ff9b::cb00:710a', '203.0.113.10']
  expect(await statuses(first.map((address) => [address]))).toEqual([200, 200, 429])
  expect(await statuses([['64:ff9b::203.0.113.11']])).toEqual([200])
})

test('all callers without an address share one budget, whatever they claim [S56]', async () => {
  const sent = [
    [undefined, claiming(1)],
    ['not an address', claiming(2)],
    [undefined, claiming(3)],
    ['203.0.113.7, 198.51.100.1', claiming(4)],
  ] as const
  expect(await statuses(sent)).toEqual([200, 200, 429, 429])
})
