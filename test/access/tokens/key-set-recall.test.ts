import { afterEach, describe, expect, it } from 'vitest'
import type { KeySetCache, StoredKeySet } from '../../../src/access/tokens/key-set-source.ts'
import { keySetOn, publishing, refusing, startProvider } from './provider.ts'
import { createSigner, NOW_MS } from './signer.ts'

const [first, second] = await Promise.all([createSigner('ES256', 'a'), createSigner('ES256', 'b')])
const both = publishing([first.publicJwk, second.publicJwk])
const text = JSON.stringify({ keys: [first.publicJwk] })

/** A shared cache with content that a test sets. */
function tier(entry?: Partial<StoredKeySet>) {
  const written: { stored: StoredKeySet; ttlSeconds: number }[] = []
  const cache: KeySetCache = {
    read: async () => (entry === undefined ? undefined : { text, fetchedAtMs: NOW_MS, ...entry }),
    async write(_uri, stored, ttlSeconds) {
      written.push({ stored, ttlSeconds })
    },
  }
  return { cache, written }
}
const secondsAgo = (seconds: number) => ({ fetchedAtMs: NOW_MS - seconds * 1000 })

let provider: Awaited<ReturnType<typeof startProvider>>
afterEach(() => provider.close())

describe('a key set in the shared cache', () => {
  it('replaces the download while it is fresh, and does not extend its lifetime', async () => {
    provider = await startProvider(both)
    const { find, advance, settled } = keySetOn(provider.url, {
      cache: tier(secondsAgo(209)).cache,
    })
    expect(await find(first)).toBe('ok')
    expect(provider.hits).toBe(0)
    advance(1)
    expect(await find(first)).toBe('ok')
    await settled()
    expect(provider.hits).toBe(1)
  })

  it('does not count as fresh for an unknown key, which may be newer than the set', async () => {
    provider = await startProvider(both)
    const { find } = keySetOn(provider.url, { cache: tier(secondsAgo(100)).cache })
    expect(await find(second)).toBe('ok')
    expect(provider.hits).toBe(1)
  })

  it('serves an isolate without a cached set for a day while the provider fails [R09]', async () => {
    provider = await startProvider(refusing)
    for (const [age, found] of [
      [3_600, 'ok'],
      [86_399, 'ok'],
      [86_400, 'key_set:refused'],
    ] as const) {
      const { find } = keySetOn(provider.url, { cache: tier(secondsAgo(age)).cache })
      expect(await find(first), `${age}`).toBe(found)
    }
    expect(provider.hits).toBe(3)
  })

  it('is ignored if its time is in the future or missing, or if it is too long', async () => {
    provider = await startProvider(both)
    const strange: Partial<StoredKeySet>[] = [
      secondsAgo(-6),
      { fetchedAtMs: Number.POSITIVE_INFINITY },
      { fetchedAtMs: Number.NaN },
      { fetchedAtMs: 0 },
      { text: `${text}${' '.repeat(262_144)}` },
    ]
    for (const [index, entry] of strange.entries()) {
      const { find } = keySetOn(provider.url, { cache: tier(entry).cache })
      expect(await find(second)).toBe('ok')
      expect(provider.hits).toBe(index + 1)
    }
  })

  it('delays no request if the cache hangs, and is not needed if the cache fails', async () => {
    provider = await startProvider(both)
    const broken: KeySetCache[] = [
      { read: () => new Promise(() => {}), write: () => new Promise(() => {}) },
      { read: () => Promise.reject(new Error('no')), write: () => Promise.reject(new Error('no')) },
    ]
    for (const cache of broken) {
      const { find } = keySetOn(provider.url, { cache })
      expect(await find(second)).toBe('ok')
    }
    expect(provider.hits).toBe(2)
  })

  it('is replaced by each valid download, and by nothing else', async () => {
    provider = await startProvider(refusing)
    const { cache, written } = tier()
    const { find, advance } = keySetOn(provider.url, { cache })
    await find(first)
    expect(written).toEqual([])
    provider.behavior = both
    advance(31)
    await find(first)
    const published = JSON.stringify({ keys: [first.publicJwk, second.publicJwk] })
    expect(written).toEqual([
      { stored: { text: published, fetchedAtMs: NOW_MS + 31_000 }, ttlSeconds: 86_400 },
    ])
  })
})
