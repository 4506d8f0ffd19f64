/** A flood of bad tokens against real gateways: told by statuses, and by what gets through. */
import { Redis } from 'ioredis'
import { afterEach, expect, inject, test, vi } from 'vitest'
import { forget, recordsOf } from '../harness/control.ts'
import { createKey, mint } from '../harness/issuer.ts'

const stack = inject('stack')
const [here, there] = stack.gateways
const LIMIT = 20
const AT_ONCE = 50
const FLOOD = 10_000
const ABUSER = '203.0.113.99'

/** The issuer's `kid`, and another's key: only the signature tells. */
const stranger = await createKey(stack.inlineKey.kid)
const forged = await mint(stranger, { claims: { roles: ['admin'] } })
const [head = '', , signature = ''] = forged.split('.')
const claims = JSON.parse(
  atob((forged.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/')),
)
const forgery = () =>
  `${head}.${Buffer.from(JSON.stringify({ ...claims, jti: crypto.randomUUID() })).toString('base64url')}.${signature}`

function ask(gateway: string, token: string, address: string): Promise<Response> {
  return fetch(`${gateway}/orders`, {
    headers: { authorization: `Bearer ${token}`, 'cf-connecting-ip': address },
  })
}

afterEach(() => forget(stack.origin))

test('S44, R18: 10,000 bad tokens from one address: 20 are looked at, others are served, no other gateway starts anew', async () => {
  const known = await mint(stack.inlineKey, { claims: { sub: 'known' } })
  expect((await ask(here, known, ABUSER)).status).toBe(200)

  const counts = new Map<number, number>()
  let served = 1
  for (let sent = 0; sent < FLOOD; sent += AT_ONCE) {
    const batch = Array.from({ length: AT_ONCE }, async () => {
      const response = await ask(here, forgery(), ABUSER)
      await response.arrayBuffer()
      counts.set(response.status, (counts.get(response.status) ?? 0) + 1)
    })
    if (sent % 1_000 === 0) {
      const other = `198.51.100.${served}`
      expect((await ask(here, await mint(stack.inlineKey), other)).status).toBe(200)
      served += 1
    }
    await Promise.all(batch)
  }
  expect([...counts.keys()].sort()).toEqual([401, 429])
  expect(counts.get(401)).toBeGreaterThanOrEqual(LIMIT)
  expect(counts.get(401)).toBeLessThan(LIMIT + AT_ONCE)

  const refused = await ask(here, await mint(stack.inlineKey), ABUSER)
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  expect(await refused.json()).toMatchObject({ code: 'rate_limited' })
  expect((await recordsOf(stack.origin)).length).toBe(served)
})

test('S44: another gateway learns of it with its first failure', async () => {
  const address = '203.0.113.98'
  for (let sent = 0; sent < LIMIT; sent++)
    expect((await ask(here, forgery(), address)).status).toBe(401)
  // Failures are written behind the answers.
  const redis = new Redis(stack.redisUrl)
  await vi.waitFor(async () =>
    expect(await redis.get(`pc:authentication-failures:${address}`)).toBe(String(LIMIT)),
  )
  expect((await ask(there, forgery(), address)).status).toBe(401)
  await vi.waitFor(async () =>
    expect(await redis.get(`pc:authentication-failures:${address}`)).toBe(String(LIMIT + 1)),
  )
  redis.disconnect()
  // The reply of Redis is on its way to that gateway.
  const good = () => mint(stack.inlineKey)
  await vi.waitFor(async () => expect((await ask(there, await good(), address)).status).toBe(429))
  expect((await ask(there, await good(), '198.51.100.98')).status).toBe(200)
})
