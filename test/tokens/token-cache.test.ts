import { describe, expect, it, vi } from 'vitest'
import type { KeySet } from '../../src/tokens/key-set.ts'
import { createTokenCache, type Verified } from '../../src/tokens/token-cache.ts'
import { createTokenVerifier } from '../../src/tokens/verifier.ts'
import { publishing, startProvider } from './provider.ts'
import { AUDIENCE, createSigner, ISSUER, issuerOf, NOW_MS, NOW_SECONDS, outcome } from './signer.ts'

const [signer, other] = await Promise.all([createSigner('ES256', 'a'), createSigner('ES256', 'b')])

function clocked(issuers = [issuerOf([signer.publicJwk])], maxCachedTokens?: number) {
  const clock = { nowMs: NOW_MS }
  const options = maxCachedTokens === undefined ? {} : { maxCachedTokens }
  const verifier = createTokenVerifier({ issuers, now: () => clock.nowMs, ...options })
  return { clock, verifier }
}

/** Counts signature checks and digests while `work` runs. */
async function cryptoCalls(work: () => Promise<unknown>): Promise<number> {
  const spies = [
    vi.spyOn(crypto.subtle, 'verify'),
    vi.spyOn(crypto.subtle, 'digest'),
    vi.spyOn(JSON, 'parse'),
  ]
  try {
    await work()
    return spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0)
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
}

describe('verified tokens', () => {
  it('are the same principal object each time, without crypto and without JSON', async () => {
    const { verifier } = clocked()
    const token = await signer.token()
    let first: unknown
    expect(await cryptoCalls(async () => (first = await verifier.verify(token)))).toBeGreaterThan(0)
    const again = async () =>
      expect(await verifier.verify(`${token.slice(0, 9)}${token.slice(9)}`)).toBe(first)
    expect(await cryptoCalls(again)).toBe(0)
  })

  it('S14: still expire, to the millisecond, when they are remembered', async () => {
    const { clock, verifier } = clocked()
    const token = await signer.token({ exp: NOW_SECONDS + 10 })
    await verifier.verify(token)
    clock.nowMs = NOW_MS + 14_999
    expect(await outcome(() => verifier.verify(token))).toBe('ok')
    clock.nowMs = NOW_MS + 15_000
    expect(await outcome(() => verifier.verify(token))).toBe('token_rejected:exp')
  })

  it('are verified anew after five minutes at the latest', async () => {
    const { clock, verifier } = clocked()
    const token = await signer.token({ exp: NOW_SECONDS + 3_600 })
    const first = await verifier.verify(token)
    clock.nowMs = NOW_MS + 299_999
    expect(await verifier.verify(token)).toBe(first)
    clock.nowMs = NOW_MS + 300_000
    const second = await verifier.verify(token)
    expect(second).not.toBe(first)
    expect(second).toEqual(first)
  })

  it('S31: another spelling of a remembered token is not that token', async () => {
    const { verifier } = clocked()
    const token = await signer.token()
    await verifier.verify(token)
    for (const respelled of [
      `${token}=`,
      `${token} `,
      token.replace('.', '. '),
      token.slice(0, -1),
      `${token}.`,
    ]) {
      expect(await outcome(() => verifier.verify(respelled))).toMatch(/^token_rejected:/)
    }
  })

  it('of a removed key stop when the key set stops vouching, though they are remembered', async () => {
    const provider = await startProvider(publishing([signer.publicJwk, other.publicJwk]))
    const remote = issuerOf([], { jwks: undefined, jwksUri: provider.url })
    const { clock, verifier } = clocked([remote])
    const tokens = await Promise.all([
      signer.token({ exp: NOW_SECONDS + 3_600 }),
      other.token({ exp: NOW_SECONDS + 3_600 }),
    ])
    clock.nowMs = NOW_MS + 200_000
    for (const token of tokens) expect(await outcome(() => verifier.verify(token))).toBe('ok')
    provider.behaviour = publishing([other.publicJwk])
    clock.nowMs = NOW_MS + 200_000 + 299_000
    expect(await outcome(() => verifier.verify(tokens[1] ?? ''))).toBe('ok')
    expect(await outcome(() => verifier.verify(tokens[0] ?? ''))).toBe('token_rejected:kid_unknown')
    expect(provider.hits).toBe(2)
    await provider.close()
  })

  it('survive a renewal that changes nothing, without being verified anew', async () => {
    const provider = await startProvider(publishing([signer.publicJwk]))
    const { clock, verifier } = clocked([issuerOf([], { jwks: undefined, jwksUri: provider.url })])
    const token = await signer.token()
    await verifier.verify(token)
    clock.nowMs = NOW_MS + 250_000
    const background: Promise<unknown>[] = []
    const renewing = await verifier.verify(token, (promise) => background.push(promise))
    await Promise.all(background)
    expect(provider.hits).toBe(2)
    clock.nowMs = NOW_MS + 290_000
    expect(await cryptoCalls(async () => expect(await verifier.verify(token)).toBe(renewing))).toBe(
      0,
    )
    await provider.close()
  })

  it('R19: are bounded in number, the least used first to go', () => {
    const cache = createTokenCache(100)
    const keySet: KeySet = {
      find: () => Promise.reject(),
      ready: () => Promise.reject(),
      vouches: () => true,
    }
    const verified = { keySet, key: {}, principal: {}, expiresAtMs: NOW_MS + 1_000 } as Verified
    for (let n = 0; n < 10_000; n++) {
      cache.set(`token-${n}`, verified, NOW_MS)
      cache.get('token-0', NOW_MS)
    }
    const kept = Array.from({ length: 10_000 }, (_, n) => cache.get(`token-${n}`, NOW_MS)).filter(
      (principal) => principal !== undefined,
    )
    expect(kept).toHaveLength(100)
    expect(cache.get('token-0', NOW_MS)).toBe(verified.principal)
  })

  it('can be left unremembered', async () => {
    const { verifier } = clocked(undefined, 0)
    const token = await signer.token({ iss: ISSUER, aud: AUDIENCE })
    expect(await verifier.verify(token)).not.toBe(await verifier.verify(token))
  })
})
