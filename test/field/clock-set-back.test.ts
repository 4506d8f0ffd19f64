/**
 * A machine whose clock was wrong, or a snapshot of one, continues at an earlier time. What was cached before
 * must not be used until the old time is reached again. The clocks are mocked.
 */
import { afterEach, describe, expect, it } from 'vitest'
import type { Principal } from '../../src/access/principal.ts'
import { createDiscovery } from '../../src/access/tokens/discovery.ts'
import type { StoredKeySet } from '../../src/access/tokens/key-set-source.ts'
import { createReferences } from '../../src/access/tokens/references.ts'
import { rejected } from '../../src/access/tokens/rejection.ts'
import { createTokenVerifier } from '../../src/access/tokens/verifier.ts'
import { keySetOn, publishing, refusing, startProvider } from '../access/tokens/provider.ts'
import {
  AUDIENCE,
  createSigner,
  ISSUER,
  issuerOf,
  NOW_MS,
  outcome,
} from '../access/tokens/signer.ts'
import { startHttpServer } from '../harness/http-server.ts'

const STEPS = [
  ['a minute', 60_000],
  ['a day', 86_400_000],
] as const

/** What is accepted from a cache, and must not be after the clock was set back. */
interface World {
  /** Makes the request. Returns what it gets. */
  request(): Promise<unknown>
  /** Changes the source, so that a request without a cache gets something else. */
  withdraw(): void
}

type Clock = { nowMs: number }
type Start = (clock: Clock) => World | Promise<World>

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

const [removed, kept] = await Promise.all([
  createSigner('ES256', 'removed'),
  createSigner('ES256', 'kept'),
])
const both = publishing([removed.publicJwk, kept.publicJwk])
const one = publishing([kept.publicJwk])

async function providerOf(behavior: typeof both) {
  const provider = await startProvider(behavior)
  ends.push(provider.close)
  return provider
}

/** It expires later than the clock is set back. */
const PRINCIPAL = { expiresAtSeconds: NOW_MS / 1000 + 86_400 } as Principal

const CACHES: readonly (readonly [string, Start])[] = [
  [
    'a key that the issuer has removed',
    async (clock) => {
      const provider = await providerOf(both)
      const issuer = issuerOf([], { jwks: undefined, jwksUri: provider.url })
      const now = () => clock.nowMs
      const verifier = createTokenVerifier({ issuers: [issuer], now, keySets: { cache: null } })
      const token = await removed.token({ exp: NOW_MS / 1000 + 300 })
      return {
        request: () => outcome(() => verifier.verify(token)),
        withdraw() {
          provider.behavior = one
        },
      }
    },
  ],
  [
    'a key set that other isolates share',
    async (clock) => {
      const provider = await providerOf(both)
      let shared: StoredKeySet | undefined
      const cache = {
        read: async () => shared,
        write: async (_: string, stored: StoredKeySet) => {
          shared = stored
        },
      }
      const options = { cache, now: () => clock.nowMs }
      return {
        // Each request is the first one of an isolate.
        async request() {
          const { find, settled } = keySetOn(provider.url, options)
          const found = await find(removed)
          await settled()
          return found
        },
        withdraw() {
          provider.behavior = one
        },
      }
    },
  ],
  [
    'an endpoint that the metadata of the issuer no longer names',
    async (clock) => {
      let name = 'old'
      const server = await startHttpServer((_, response) =>
        response.end(JSON.stringify({ issuer: ISSUER, jwks_uri: `https://idp.test/${name}` })),
      )
      ends.push(server.close)
      const discovery = createDiscovery(ISSUER, 'jwks_uri', [server.url])
      return {
        request: () => discovery.locate(clock.nowMs, 2_000),
        withdraw() {
          name = 'new'
        },
      }
    },
  ],
  [
    'a token that its issuer no longer confirms',
    (clock) => {
      let isActive = true
      const now = () => clock.nowMs
      const verifier = createTokenVerifier({
        issuers: [issuerOf([kept.publicJwk])],
        now,
        calls: {
          opaqueIssuerOf: () => ISSUER,
          callTo: () => async () => {
            if (!isActive) throw rejected('inactive')
            return { principal: PRINCIPAL, expiresAtMs: clock.nowMs + 60_000 }
          },
        },
      })
      return {
        request: () => outcome(() => verifier.verify('opaque')),
        withdraw() {
          isActive = false
        },
      }
    },
  ],
  [
    'a reference without a record',
    (clock) => {
      let isStored = true
      const references = createReferences({ audience: AUDIENCE, now: () => clock.nowMs })
      return {
        async request() {
          if (references.recall('reference') !== undefined) return 'ok'
          if (isStored) references.remember('reference', PRINCIPAL)
          return isStored ? 'ok' : 'refused'
        },
        withdraw() {
          isStored = false
        },
      }
    },
  ],
]

/** Caches that also notice a step to a time after their entry was made. */
const IN_USE: readonly string[] = [
  'a token that its issuer no longer confirms',
  'a reference without a record',
]

describe.each(STEPS)('after the clock was set back by %s', (_, stepMs) => {
  it.each(CACHES)('no cache accepts %s', async (_name, start) => {
    const clock = { nowMs: NOW_MS }
    const { request, withdraw } = await start(clock)
    const accepted = await request()
    withdraw()
    clock.nowMs += 1_000
    expect(await request(), 'the cache is in use').toEqual(accepted)
    clock.nowMs -= stepMs
    expect(await request()).not.toEqual(accepted)
  })

  it.each(CACHES.filter(([name]) => IN_USE.includes(name)))(
    'no cache accepts %s that was used all the time',
    async (_name, start) => {
      const clock = { nowMs: NOW_MS }
      const { request, withdraw } = await start(clock)
      const accepted = await request()
      clock.nowMs += 50_000
      expect(await request()).toEqual(accepted)
      withdraw()
      clock.nowMs -= stepMs - 20_000
      expect(await request()).not.toEqual(accepted)
    },
  )

  it('a refresh that its request did not end is made again', async () => {
    const clock = { nowMs: NOW_MS }
    const provider = await providerOf(both)
    const { find, keySet } = keySetOn(provider.url, { cache: null, now: () => clock.nowMs })
    expect(await find(removed)).toBe('ok')
    clock.nowMs += 400_000
    provider.behavior = () => {}
    void find(removed)
    await expect.poll(() => provider.hits).toBe(2)
    clock.nowMs -= stepMs
    provider.behavior = one
    expect(await find(kept)).toBe('ok')
    expect(provider.hits).toBe(3)
    expect(await find(removed)).toBe('token_rejected:kid_unknown')
    await keySet.ready()
  })

  it('the pause after a failed download has ended, and the last good set is still used', async () => {
    const clock = { nowMs: NOW_MS }
    const provider = await providerOf(both)
    const { find, settled } = keySetOn(provider.url, { cache: null, now: () => clock.nowMs })
    expect(await find(removed)).toBe('ok')
    clock.nowMs += 400_000
    provider.behavior = refusing
    expect(await find(removed)).toBe('ok')
    clock.nowMs -= stepMs
    expect(await find(removed)).toBe('ok')
    await settled()
    expect(provider.hits).toBe(3)
    clock.nowMs -= stepMs
    provider.behavior = one
    expect(await find(kept)).toBe('ok')
    await settled()
    expect(await find(removed)).toBe('token_rejected:kid_unknown')
  })
})
