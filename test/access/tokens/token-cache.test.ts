import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { decodeJwt } from 'jose'
import { describe, expect, it, vi } from 'vitest'
import { createKeyCache } from '../../../src/access/admission/keys.ts'
import type { Principal } from '../../../src/access/principal.ts'
import { createAssertionSigner } from '../../../src/access/tokens/assertion.ts'
import type { KeySet } from '../../../src/access/tokens/key-set.ts'
import { parseSigningKeys } from '../../../src/access/tokens/signing-keys.ts'
import {
  cachedBytes,
  createTokenCache,
  createTokenVerifier,
  type Verified,
} from '../../../src/access/tokens/verifier.ts'
import { newTally } from '../../../src/isolate/tally.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { publishing, startProvider } from './provider.ts'
import { AUDIENCE, createSigner, ISSUER, issuerOf, NOW_MS, NOW_SECONDS, outcome } from './signer.ts'

const [signer, other] = await Promise.all([createSigner('ES256', 'a'), createSigner('ES256', 'b')])

/** More than the gateway's own tokens have. */
const ORDINARY_CHARACTERS = 500

const keySet: KeySet = {
  find: () => Promise.reject(),
  ready: () => Promise.reject(),
  isCurrent: () => true,
}
const verified = { keySet, key: {}, principal: {}, expiresAtMs: NOW_MS + 1_000 } as Verified

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/**
 * Returns the used heap in bytes, after garbage collection. Objects of Web Crypto are released by tasks
 * that run after a collection, so it collects in several turns of the event loop.
 */
async function usedHeap(): Promise<number> {
  for (let turn = 0; turn < 5; turn++) {
    await nextTurn()
    collect()
  }
  return process.memoryUsage().heapUsed
}

async function signerOfAssertions() {
  const { privateJwk } = await createSigner('ES256', 'gateway')
  return createAssertionSigner({
    keys: parseSigningKeys({ keys: [privateJwk] }),
    issuer: 'https://gateway.test',
    audience: 'https://origin.test',
    now: () => NOW_MS,
  })
}

function clocked(issuers = [issuerOf([signer.publicJwk])], maxCachedBytes?: number) {
  const clock = { nowMs: NOW_MS }
  const options = maxCachedBytes === undefined ? {} : { maxCachedBytes }
  const verifier = createTokenVerifier({ issuers, now: () => clock.nowMs, ...options })
  return { clock, verifier }
}

/** Counts signature checks, digests and JSON parses while `work` runs. */
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

describe('the cache of verified tokens', () => {
  it('returns the same principal object each time, without crypto and without JSON', async () => {
    const { verifier } = clocked()
    const token = await signer.token()
    let first: unknown
    expect(await cryptoCalls(async () => (first = await verifier.verify(token)))).toBeGreaterThan(0)
    const again = async () =>
      expect(await verifier.verify(`${token.slice(0, 9)}${token.slice(9)}`)).toBe(first)
    expect(await cryptoCalls(again)).toBe(0)
  })

  it('keeps an assertion with its principal, and not with a copy for another subject', async () => {
    const { sign } = await signerOfAssertions()
    const principal = await clocked().verifier.verify(await signer.token())
    const first = await sign(principal)
    expect(await sign(principal)).toBe(first)
    const copy = { ...principal, subject: 'another' }
    expect(decodeJwt(await sign(copy)).sub).toBe('another')
    expect(decodeJwt(await sign(Object.freeze({ ...copy, subject: 'frozen' }))).sub).toBe('frozen')
    expect(await sign(principal)).toBe(first)
  })

  it('keeps equal lists once, which no request can change', async () => {
    const { verifier } = clocked()
    const read = async (jti: string) =>
      verifier.verify(await signer.token({ jti, roles: ['writer'], scope: 'a b' }))
    const [one, other] = [await read('1'), await read('2')]
    expect(other).not.toBe(one)
    for (const name of ['roles', 'scopes', 'audiences'] as const) {
      expect(other[name]).toBe(one[name])
      expect(() => (one[name] as string[]).push('admin')).toThrow(TypeError)
    }
    const third = await verifier.verify(await signer.token({ jti: '3', roles: ['writer', 'a'] }))
    expect(third.roles).toEqual(['writer', 'a'])
    const long = { roles: Array.from({ length: 200 }, (_, at) => `role-${at}`) }
    const [large, same] = await Promise.all(
      ['4', '5'].map(async (jti) => verifier.verify(await signer.token({ jti, ...long }))),
    )
    expect(same?.roles).toEqual(large?.roles)
    expect(same?.roles).not.toBe(large?.roles)
    expect(Object.isFrozen(large?.roles)).toBe(true)
  })

  it('displaces tokens that were not used for a minute, not those in use', () => {
    const cache = createTokenCache()
    const lasting = { ...verified, expiresAtMs: NOW_MS + 600_000 }
    for (const name of ['used', 'idle']) cache.set(name, lasting, NOW_MS)
    cache.get('used', NOW_MS + 59_000)
    const nowMs = NOW_MS + 60_000
    cache.set('next', lasting, nowMs)
    const kept = ['used', 'idle', 'next'].filter((name) => cache.get(name, nowMs) !== undefined)
    expect(kept).toEqual(['used', 'next'])
  })

  it('removes tokens that have ended, two for each new one', () => {
    const cache = createTokenCache()
    for (const name of ['a', 'b', 'c']) cache.set(name, verified, NOW_MS)
    const later = { ...verified, expiresAtMs: NOW_MS + 3_000 }
    cache.set('d', later, NOW_MS + 1_000)
    // A reader with an earlier clock finds what is still stored.
    const stored = () => ['a', 'b', 'c', 'd', 'e'].filter((name) => cache.get(name, NOW_MS))
    expect(stored()).toEqual(['c', 'd'])
    cache.set('e', later, NOW_MS + 1_000)
    expect(stored()).toEqual(['d', 'e'])
  })

  it('refuses an expired token, to the millisecond [S14]', async () => {
    const { clock, verifier } = clocked()
    const token = await signer.token({ exp: NOW_SECONDS + 10 })
    await verifier.verify(token)
    clock.nowMs = NOW_MS + 14_999
    expect(await outcome(() => verifier.verify(token))).toBe('ok')
    clock.nowMs = NOW_MS + 15_000
    expect(await outcome(() => verifier.verify(token))).toBe('token_rejected:exp')
  })

  it('keeps a token for at most five minutes, and verifies it again after that', async () => {
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

  it('does not return a cached principal for another spelling of its token [S31]', async () => {
    const { verifier } = clocked()
    const token = await signer.token()
    await verifier.verify(token)
    for (const respelled of [
      `${token}=`,
      `${token} `,
      token.replace('.', '. '),
      // Another payload with the same signature.
      token.replace(/\.[^.]+\./, '.e30.'),
      token.slice(0, -1),
      `${token}.`,
    ]) {
      expect(await outcome(() => verifier.verify(respelled))).toMatch(/^token_rejected:/)
    }
  })

  it('refuses tokens of a removed key when the key set no longer contains it', async () => {
    const provider = await startProvider(publishing([signer.publicJwk, other.publicJwk]))
    const remote = issuerOf([], { jwks: undefined, jwksUri: provider.url })
    const { clock, verifier } = clocked([remote])
    const tokens = await Promise.all([
      signer.token({ exp: NOW_SECONDS + 3_600 }),
      other.token({ exp: NOW_SECONDS + 3_600 }),
    ])
    clock.nowMs = NOW_MS + 200_000
    for (const token of tokens) expect(await outcome(() => verifier.verify(token))).toBe('ok')
    provider.behavior = publishing([other.publicJwk])
    clock.nowMs = NOW_MS + 200_000 + 299_000
    expect(await outcome(() => verifier.verify(tokens[1] ?? ''))).toBe('ok')
    expect(await outcome(() => verifier.verify(tokens[0] ?? ''))).toBe('token_rejected:kid_unknown')
    expect(provider.hits).toBe(2)
    await provider.close()
  })

  it('keeps tokens after a renewal of the key set without changes, without another verification', async () => {
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

  it('is bounded in bytes, and evicts the least recently used [R19]', () => {
    const cache = createTokenCache(100 * cachedBytes('token-1234'.length))
    for (let n = 0; n < 10_000; n++) {
      cache.set(`token-${n}`, verified, NOW_MS)
      cache.get('token-0', NOW_MS)
    }
    const kept = Array.from({ length: 10_000 }, (_, n) => cache.get(`token-${n}`, NOW_MS)).filter(
      (principal) => principal !== undefined,
    )
    expect(kept).toHaveLength(100)
    expect(cache.get('token-0', NOW_MS)).toBe(verified.principal)
    cache.set(`token-${'x'.repeat(8_000)}`, verified, NOW_MS)
    expect(cache.get('token-9901', NOW_MS)).toBeUndefined()
    expect(cache.get('token-9999', NOW_MS)).toBeDefined()
  })

  it('counts what introspection says of a token, which is not in its text [R19]', () => {
    const roles = ['r'.repeat(8_000)]
    const large = { ...verified, key: undefined, principal: { roles } } as unknown as Verified
    const cache = createTokenCache(
      10 * cachedBytes('token-1'.length + JSON.stringify({ roles }).length),
    )
    for (let n = 0; n < 100; n++) cache.set(`token-${n}`, large, NOW_MS)
    const kept = Array.from({ length: 100 }, (_, n) => cache.get(`token-${n}`, NOW_MS))
    const count = kept.filter((principal) => principal !== undefined).length
    expect(count).toBeGreaterThan(0)
    expect(count).toBeLessThanOrEqual(10)
  })

  it('holds 10,000 ordinary tokens', () => {
    const cache = createTokenCache()
    const token = (n: number) => `${n}`.padEnd(ORDINARY_CHARACTERS, '.')
    for (let n = 0; n < 10_000; n++) cache.set(token(n), verified, NOW_MS)
    for (let n = 0; n < 10_000; n++) expect(cache.get(token(n), NOW_MS)).toBeDefined()
  })

  it.each([
    // Enough tokens that other objects on the heap are negligible.
    ['ordinary', 2_000, { client_id: 'c'.repeat(36), scope: 'orders:read orders:write' }],
    [
      'long',
      700,
      { sub: 'ü'.repeat(250), roles: Array.from({ length: 40 }, (_, n) => `${n}`.repeat(50)) },
    ],
    ['with many small members', 700, { roles: Array.from({ length: 400 }, (_, n) => `r${n}`) }],
  ])(
    'uses no more heap than it counts, with all that belongs to a caller (%s) [R19]',
    async (_what, count, claims) => {
      const { verifier } = clocked(undefined, 1_000_000_000)
      const keysOf = createKeyCache(createKeys('pc'))
      const assertions = await signerOfAssertions()
      /** What the stages of a request attach to its principal. */
      async function serve(principal: Principal): Promise<void> {
        await keysOf(principal, '192.0.2.1')
        await assertions.sign(principal)
      }
      const texts: Buffer[] = []
      for (let n = 0; n < count; n++) {
        const claimed = { exp: NOW_SECONDS + 3_600, jti: `${n}`, ...claims }
        texts.push(Buffer.from(await signer.token(claimed)))
      }
      // One round before the measurement, for objects that are created only once.
      for (let n = 0; n < 500; n++)
        await serve(await clocked().verifier.verify(await signer.token({ jti: `${n}`, ...claims })))
      const before = await usedHeap()
      for (const text of texts) await serve(await verifier.verify(text.toString('latin1')))
      const counted = texts.reduce((sum, text) => sum + cachedBytes(text.length), 0)
      const used = (await usedHeap()) - before
      expect(used).toBeGreaterThan(counted / 4)
      expect(used).toBeLessThan(counted * 1.1)
      expect(await verifier.verify(texts[0]?.toString('latin1') ?? '')).toBeDefined()
    },
  )

  it('stays within its limit under a flood of distinct tokens [R19]', async () => {
    const maxBytes = 2_000_000
    const tally = newTally()
    const verifier = createTokenVerifier({
      issuers: [issuerOf([signer.publicJwk])],
      now: () => NOW_MS,
      maxCachedBytes: maxBytes,
      tally,
    })
    const texts: Buffer[] = []
    for (let n = 0; n < 3_000; n++)
      texts.push(Buffer.from(await signer.token({ exp: NOW_SECONDS + 3_600, jti: `${n}` })))
    const before = await usedHeap()
    for (const text of texts) await verifier.verify(text.toString('latin1'))
    expect((await usedHeap()) - before).toBeLessThan(maxBytes * 1.1)
    const kept = Math.floor(maxBytes / cachedBytes(texts[0]?.length ?? 0))
    expect(tally.evictions).toBeGreaterThan(0.9 * (texts.length - kept))
    expect(tally.evictions).toBeLessThanOrEqual(1.1 * (texts.length - kept))
    // Keeps the cache reachable until here.
    const last = texts.at(-1)?.toString('latin1') ?? ''
    expect(await cryptoCalls(() => verifier.verify(last))).toBe(0)
  })

  it('can be turned off', async () => {
    const { verifier } = clocked(undefined, 0)
    const token = await signer.token({ iss: ISSUER, aud: AUDIENCE })
    expect(await verifier.verify(token)).not.toBe(await verifier.verify(token))
  })
})

describe('the cache of forged tokens', () => {
  /** Has the name of the signer's key, and another key. */
  const forging = createSigner('ES256', 'a')
  const refused = 'token_rejected:signature'

  it('refuses the same text again without crypto and without JSON, and no other one', async () => {
    const { verifier } = clocked()
    const forger = await forging
    const token = await forger.token()
    expect(await outcome(() => verifier.verify(token))).toBe(refused)
    const again = async () =>
      expect(await outcome(() => verifier.verify(`${token.slice(0, 9)}${token.slice(9)}`))).toBe(
        refused,
      )
    expect(await cryptoCalls(again)).toBe(0)
    expect(verifier.recall(token)).toBeUndefined()
    expect(await outcome(() => verifier.verify(`${token}.`))).toBe('token_rejected:segments')
    const other = await forger.token({ jti: 'token-2' })
    expect(
      await cryptoCalls(async () =>
        expect(await outcome(() => verifier.verify(other))).toBe(refused),
      ),
    ).toBeGreaterThan(0)
    expect(await outcome(async () => verifier.verify(await signer.token()))).toBe('ok')
  })

  it('does not keep a valid token that the platform failed to verify', async () => {
    const { verifier } = clocked()
    const token = await signer.token()
    const failing = vi
      .spyOn(crypto.subtle, 'verify')
      .mockRejectedValueOnce(new Error('out of memory'))
    expect(await outcome(() => verifier.verify(token))).toBe('gateway:refused')
    failing.mockRestore()
    expect(await outcome(() => verifier.verify(token))).toBe('ok')
  })

  it('accepts a token as soon as its key is published under the same name', async () => {
    const provider = await startProvider(publishing([signer.publicJwk]))
    const { clock, verifier } = clocked([issuerOf([], { jwks: undefined, jwksUri: provider.url })])
    const forger = await forging
    const token = await forger.token({ exp: NOW_SECONDS + 3_600 })
    for (let count = 0; count < 2; count += 1)
      expect(await outcome(() => verifier.verify(token))).toBe(refused)
    provider.behavior = publishing([forger.publicJwk])
    clock.nowMs = NOW_MS + 299_000
    const background: Promise<unknown>[] = []
    const renewing = await signer.token({ exp: NOW_SECONDS + 3_600 })
    await outcome(() => verifier.verify(renewing, (promise) => background.push(promise)))
    await Promise.all(background)
    expect(await outcome(() => verifier.verify(token))).toBe('ok')
    await provider.close()
  })

  it('keeps the last 256 KiB of texts [R19]', async () => {
    const { verifier } = clocked()
    const forger = await forging
    const long = { sub: 's'.repeat(250), roles: ['r'.repeat(8_000)] }
    const tokens: string[] = []
    for (let n = 0; n < 30; n += 1) tokens.push(await forger.token({ ...long, jti: `${n}` }))
    for (const token of tokens) await outcome(() => verifier.verify(token))
    const isKept = async (token = '') =>
      (await cryptoCalls(() => outcome(() => verifier.verify(token)))) === 0
    expect(await isKept(tokens.at(-1))).toBe(true)
    expect(await isKept(tokens[0])).toBe(false)
  })
})
