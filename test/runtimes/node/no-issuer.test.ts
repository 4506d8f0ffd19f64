/** A gateway that trusts no issuer says so. */
import { afterEach, expect, test, vi } from 'vitest'
import { definePolicy } from '../../../src/index.ts'
import { check } from '../../../src/runtimes/node/index.ts'

const env = {
  UPSTASH_REDIS_REST_URL: 'https://redis.example',
  UPSTASH_REDIS_REST_TOKEN: 'x',
  PUBLIC_URL: 'https://gateway.example',
  ORIGIN_URL: 'https://origin.example',
}
const ISSUERS = JSON.stringify([
  { issuer: 'https://idp.example', audience: 'api', jwksUri: 'https://idp.example/jwks' },
])
const OPEN = { method: 'GET', path: '/open', anonymous: true } as const
const ORDERS = { method: 'GET', path: '/orders', permission: 'orders:read' } as const

afterEach(() => vi.restoreAllMocks())

test.each([
  ['no issuer', {}, [OPEN, ORDERS], 1],
  ['an issuer', { ISSUERS }, [OPEN, ORDERS], 0],
  ['only anonymous routes', {}, [OPEN], 0],
])('with %s, the check warns as it should', async (_, variables, routes, count) => {
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  await check({
    policy: definePolicy({ roles: {}, limits: {}, routes }),
    env: { ...env, ...variables },
  })
  const lines = warn.mock.calls.flat().filter((line) => /ISSUERS: there is no issuer/.test(line))
  expect(lines).toHaveLength(count)
})
