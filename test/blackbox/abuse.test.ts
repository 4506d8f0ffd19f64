/** A flood of bad tokens against real gateways: told by statuses, and by what gets through. */
import { Redis } from 'ioredis'
import { beforeEach, expect, inject, test, vi } from 'vitest'
import { forget, recordsOf } from '../harness/control.ts'
import { createKey, mint } from '../harness/issuer.ts'

const stack = inject('stack')
const [here, there] = stack.gateways
const LIMIT = 20
const AT_ONCE = 50
/** Ten thousand are sent in process, where signatures can be counted: test/admission. */
const FLOOD = 2_000
const WINDOW_MS = 60_000
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

/** On a starved machine a call to Redis may miss its deadline: asked again then. */
async function expectServed(gateway: string, token: string, address: string): Promise<void> {
  await vi.waitFor(async () => expect((await ask(gateway, token, address)).status).toBe(200), {
    timeout: 10_000,
  })
}

async function expectRefusal(token: string): Promise<void> {
  const response = await ask(here, token, ABUSER)
  expect(response.status).toBe(429)
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  expect(await response.json()).toMatchObject({ code: 'rate_limited' })
}

beforeEach(() => forget(stack.origin))

test('S44, R18: 2,000 bad tokens from one address: 20 are looked at, others are served, no other gateway starts anew', async () => {
  const known = await mint(stack.inlineKey, { claims: { sub: 'known' } })
  await expectServed(here, known, ABUSER)

  const startMs = Date.now()
  const counts = new Map<number, number>()
  let served = 1
  for (let sent = 0; sent < FLOOD; sent += AT_ONCE) {
    const batch = Array.from({ length: AT_ONCE }, async () => {
      const response = await ask(here, forgery(), ABUSER)
      await response.arrayBuffer()
      counts.set(response.status, (counts.get(response.status) ?? 0) + 1)
    })
    if (sent % 500 === 0) {
      const other = `198.51.100.${served}`
      await expectServed(here, await mint(stack.inlineKey), other)
      served += 1
    }
    await Promise.all(batch)
    if (sent > 0) continue
    await expectRefusal(await mint(stack.inlineKey))
    await expectServed(here, known, ABUSER)
    served += 1
  }
  expect([...counts.keys()].sort()).toEqual([401, 429])
  expect(counts.get(401)).toBeGreaterThanOrEqual(LIMIT)
  // On a starved machine the flood may outlive its window.
  const windows = 1 + Math.ceil((Date.now() - startMs) / WINDOW_MS)
  expect(counts.get(401)).toBeLessThan(windows * (LIMIT + AT_ONCE))
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
  await expectServed(there, await good(), '198.51.100.98')
})
