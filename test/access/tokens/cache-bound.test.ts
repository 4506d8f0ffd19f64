import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Principal } from '../../../src/access/principal.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { composeServices, definePolicy } from '../../../src/index.ts'
import { createSigner, issuerOf } from './signer.ts'

const signer = await createSigner('ES256', 'a')
const base = {
  roles: { reader: ['orders:read'] },
  limits: {},
  routes: [{ method: 'GET', path: '/', permission: 'orders:read' }],
} as const

/** The credentials of a gateway, whose Redis and origin are never called. */
function credentialsOf(tokenCacheBytes?: number) {
  const policy = definePolicy({ ...base, ...(tokenCacheBytes && { tokenCacheBytes }) })
  const { verifier, references } = composeServices(
    {
      PUBLIC_URL: 'https://gateway.test',
      UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9',
      UPSTASH_REDIS_REST_TOKEN: 'unused',
      ORIGIN_URL: 'http://127.0.0.1:9',
      ISSUERS: JSON.stringify([issuerOf([signer.publicJwk])]),
    },
    policy,
    WORKERS,
  )
  return { verifier, references }
}

const tokensOf = (count: number) => {
  const exp = Math.floor(Date.now() / 1_000) + 3_600
  return Promise.all(
    Array.from({ length: count }, (_, n) => signer.token({ iat: exp - 3_600, exp, jti: `${n}` })),
  )
}

const BYTES = 1_048_576

afterEach(() => void vi.restoreAllMocks())

describe('tokenCacheBytes', () => {
  test('bounds the signed tokens that a gateway keeps, and drops the least recently used [R19]', async () => {
    const { verifier } = credentialsOf(BYTES)
    const tokens = await tokensOf(400)
    const first = tokens[0] ?? ''
    const room = Math.floor(((BYTES / 3) * 2) / (2_048 + 3 * first.length))
    expect(room).toBeLessThan(300)
    for (const token of tokens) await verifier.verify(token)
    const kept = tokens.filter((token) => verifier.recall(token) !== undefined)
    expect(kept.length).toBeGreaterThan(0.95 * room)
    expect(kept.length).toBeLessThanOrEqual(1.05 * room)
    expect(kept).toEqual(tokens.slice(-kept.length))
    const verify = vi.spyOn(crypto.subtle, 'verify')
    expect(await verifier.verify(first)).toMatchObject({ tokenId: '0' })
    expect(verify).toHaveBeenCalledTimes(1)
  })

  test('bounds the references that a gateway keeps [R19]', async () => {
    const { verifier, references } = credentialsOf(BYTES)
    const [token = ''] = await tokensOf(1)
    const principal: Principal = await verifier.verify(token)
    for (let n = 0; n < 400; n++) references?.remember(`reference-${n}`, principal)
    const kept = Array.from({ length: 400 }, (_, n) => references?.recall(`reference-${n}`))
    const count = kept.filter((found) => found !== undefined).length
    const bytes = 2_048 + 3 * JSON.stringify(principal).length
    expect(count).toBe(Math.floor(BYTES / 3 / bytes))
    expect(kept.at(-1)).toBe(principal)
  })

  test('has room for 10,000 ordinary tokens by default, and a value out of range is a mistake', () => {
    expect(definePolicy(base).tokenCacheBytes).toBe(62_914_560)
    expect(((62_914_560 / 3) * 2) / (2_048 + 3 * 500)).toBeGreaterThan(10_000)
    for (const tokenCacheBytes of [0, 1_048_575, 4_294_967_297, 1.5])
      expect(() => definePolicy({ ...base, tokenCacheBytes })).toThrow(/tokenCacheBytes/)
  })
})
