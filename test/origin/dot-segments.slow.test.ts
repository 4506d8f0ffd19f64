/**
 * The shipped gateway forwards a path as it was sent. `wrangler dev` does not: see
 * `test/blackbox/paths.test.ts`.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { AUDIENCE, createKey, ISSUER, mint, type TestKey } from '../harness/issuer.ts'
import { getRaw } from '../harness/raw.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'
import { startHttpOrigin } from './origin-server.ts'
import { RUNTIMES } from './runtimes.ts'
import type { Running } from './workerd.ts'

describe.each(RUNTIMES)('the shipped gateway on $name [S50, S75]', ({ startShipped }) => {
  let redis: TestRedis
  let origin: Awaited<ReturnType<typeof startHttpOrigin>>
  let gateway: Running
  let key: TestKey

  beforeAll(async () => {
    redis = await startTestRedis()
    origin = await startHttpOrigin((_, response) => response.end('[]'))
    key = await createKey('idp')
    gateway = await startShipped({
      ...redisVars(redis),
      PUBLIC_URL: AUDIENCE,
      ORIGIN_URL: `http://127.0.0.1:${origin.port}`,
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
      ]),
    })
  })
  beforeEach(() => {
    origin.requests.length = 0
  })
  afterAll(() => Promise.all([gateway?.stop(), origin?.close(), redis?.close()]))

  const url = () => `http://127.0.0.1:${gateway.port}`
  const bearer = async () => `Authorization: Bearer ${await mint(key)}`

  test('forwards a path without dot segments as it was sent', async () => {
    expect((await getRaw(url(), '/orders', [await bearer()])).status).toBe(200)
    expect(origin.requests.map((request) => request.url)).toEqual(['/orders'])
  })

  test.each([
    '/public/../orders',
    '/public/ping/../../orders',
    '/./orders',
    '/orders/.',
    '/orders/..',
    '/orders/../orders',
    '/../orders',
    '/.../orders',
    '/public/%2e%2e/orders',
    '/public/.%2e/orders',
    '/%2e/orders',
    '/orders/%2e',
    '/public/..%20/orders',
    '/public/..%2forders',
    '/public/..;/orders',
    'http://gateway.test/public/../orders',
  ])(
    'refuses %s for a caller who may read orders, and the origin receives no request',
    async (target) => {
      const { status, text } = await getRaw(url(), target, [await bearer()])
      expect(status).toBe(400)
      expect(text).toContain('"code":"ambiguous_path"')
      expect(origin.requests).toHaveLength(0)
    },
  )
})
