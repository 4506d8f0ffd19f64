/** CORS of a policy with several hosts: each host has the rules of its own routes. */
import { definePolicy } from 'portcullis'
import { cors } from 'portcullis/cors'
import { origins } from 'portcullis/origins'
import { policyTester } from 'portcullis/testing'
import { describe, expect, test } from 'vitest'

const SHOP = 'https://shop.example.com'
const STAFF = 'https://staff.example.com'
const OPEN = 'https://open.example.com'

const row = { method: 'GET', permission: 'orders:read', origin: 'orders' } as const
const policy = definePolicy({
  roles: { reader: ['orders:read'] },
  limits: {},
  origins: origins({ orders: { url: 'https://orders.internal' } }),
  routes: [
    { ...row, path: '/orders', host: 'staff.test', cors: cors({ origins: [STAFF] }) },
    {
      ...row,
      path: '/carts',
      host: '*.shop.test',
      cors: cors({ origins: [SHOP], credentials: true }),
    },
    { ...row, path: '/sites', host: 'plain.shop.test' },
    { ...row, path: '/status', cors: cors({ origins: [OPEN] }) },
  ],
})
const tester = policyTester(policy)

async function allowedPage(line: string, host: string, page: string, headers = {}) {
  const sent = { host, headers: { origin: page, ...headers } }
  const { response } = await tester.request(line, sent)
  return [response.status, response.headers.get('access-control-allow-origin')]
}

describe('a page can read', () => {
  test.each([
    ['staff.test', '/orders', STAFF],
    ['a.shop.test', '/carts', SHOP],
    ['plain.shop.test', '/carts', SHOP],
    ['staff.test', '/status', OPEN],
    ['other.test', '/status', OPEN],
  ])('why %s refuses GET %s, if the rules of this route allow it', async (host, path, page) => {
    for (const one of [STAFF, SHOP, OPEN])
      expect(await allowedPage(`GET ${path}`, host, one)).toEqual([401, one === page ? one : null])
  })

  test.each([
    ['staff.test', [STAFF, OPEN]],
    ['a.shop.test', [SHOP, OPEN]],
    ['plain.shop.test', [SHOP, OPEN]],
    ['shop.test', [OPEN]],
    ['b.a.shop.test', [OPEN]],
    ['other.test', [OPEN]],
  ])('a 404 and a 405 of %s only with rules of its routes', async (host, pages) => {
    for (const page of [STAFF, SHOP, OPEN]) {
      const allowed = pages.includes(page) ? page : null
      expect(await allowedPage('GET /nothing', host, page)).toEqual([404, allowed])
      expect(await allowedPage('POST /status', host, page)).toEqual([405, allowed])
    }
  })
})

test('a preflight request gets the rules of its host', async () => {
  const asks = { 'access-control-request-method': 'GET' }
  expect(await allowedPage('OPTIONS /carts', 'a.shop.test', SHOP, asks)).toEqual([204, SHOP])
  expect(await allowedPage('OPTIONS /carts', 'a.shop.test', STAFF, asks)).toEqual([204, null])
  expect(await allowedPage('OPTIONS /carts', 'staff.test', STAFF, asks)).toEqual([404, STAFF])
})
