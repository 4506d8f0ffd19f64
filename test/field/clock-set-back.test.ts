/**
 * A machine whose clock was wrong, or a snapshot of one, continues at an earlier time. What was cached before
 * must not be used until the old time is reached again. The clocks are mocked.
 */
import { describe, expect, it } from 'vitest'
import { createRelationCache } from '../../src/access/relations/cache.ts'
import { createTokenSource } from '../../src/features/credentials/token-source.ts'
import { keySetOn, refusing } from '../access/tokens/provider.ts'
import { NOW_MS } from '../access/tokens/signer.ts'
import { both, CACHES, IN_USE, kept, one, providerOf, RELATION, removed } from './clock-caches.ts'

const STEPS = [
  ['a minute', 60_000],
  ['a day', 86_400_000],
] as const

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

  it('decisions about relations are cached again', () => {
    const cache = createRelationCache({ maxStalenessMs: 5_000, maxEntries: 10 })
    cache.set(RELATION, { decision: { outcome: 'allowed' }, version: 1 }, NOW_MS)
    cache.set(RELATION, { decision: { outcome: 'denied' }, version: 1 }, NOW_MS - stepMs)
    expect(cache.get(RELATION, NOW_MS - stepMs)).toEqual({ outcome: 'denied' })
  })

  it('an access token that an origin refuses is fetched again', async () => {
    const clock = { nowMs: NOW_MS }
    let fetches = 0
    const source = createTokenSource({
      fetchToken: async () => ({ token: `${++fetches}`, lifeMs: 10 * stepMs }),
      target: 'https://idp.test/token',
      watch: () => ({ changed() {}, refused() {} }),
      now: () => clock.nowMs,
    })
    expect(await source.current(1_000)).toBe('1')
    expect(source.drop('1')).toBe(false)
    clock.nowMs -= stepMs
    expect(source.drop('1')).toBe(true)
    expect(await source.current(1_000)).toBe('2')
  })

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
