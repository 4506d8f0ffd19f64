import { afterEach, describe, expect, it } from 'vitest'
import { Unavailable } from '../../../src/errors.ts'
import {
  hanging,
  keySetOn,
  publishing,
  refusing,
  respondingWith,
  startProvider,
} from './provider.ts'
import { createSigner } from './signer.ts'

const [first, second] = await Promise.all([createSigner('ES256', 'a'), createSigner('ES256', 'b')])
const one = publishing([first.publicJwk])
const both = publishing([first.publicJwk, second.publicJwk])
const unknown = (kid: string) => ({ kid, alg: 'ES256' }) as const

let provider: Awaited<ReturnType<typeof startProvider>>
afterEach(() => provider.close())

describe('a remote key set', () => {
  it('fifty simultaneous requests without a cached set make one fetch [R08]', async () => {
    provider = await startProvider((response, request) =>
      setTimeout(() => one(response, request), 60),
    )
    const { find } = keySetOn(provider.url)
    const found = await Promise.all(Array.from({ length: 50 }, () => find(first)))
    expect(new Set(found)).toEqual(new Set(['ok']))
    expect(provider.hits).toBe(1)
  })

  it('fifty simultaneous requests at an unreachable provider make one fetch, and share its failure [R08]', async () => {
    provider = await startProvider(hanging)
    const { find } = keySetOn(provider.url)
    const found = await Promise.all(Array.from({ length: 50 }, () => find(first)))
    expect(new Set(found)).toEqual(new Set(['key_set:timeout']))
    expect(await find(first)).toBe('key_set:timeout')
    expect(provider.hits).toBe(1)
  })

  it('serves from memory, renews before its expiry, and waits for the renewal after it', async () => {
    provider = await startProvider(one)
    const { find, advance, settled } = keySetOn(provider.url)
    await find(first)
    advance(209)
    expect(await find(first)).toBe('ok')
    expect(provider.hits).toBe(1)
    provider.behavior = both
    advance(1)
    expect(await find(first)).toBe('ok')
    await settled()
    expect(provider.hits).toBe(2)
    expect(await find(second)).toBe('ok')
    expect(provider.hits).toBe(2)
    provider.behavior = publishing([second.publicJwk])
    advance(100_000)
    expect(await find(first)).toBe('token_rejected:kid_unknown')
    expect(provider.hits).toBe(3)
  })

  it('Cache-Control may shorten the maximum age, down to a minute, and never extends it', async () => {
    for (const [cacheControl, stillFresh, renewed] of [
      ['public, max-age=100', 69, 70],
      ['max-age=0, must-revalidate', 41, 42],
      ['max-age=86400', 209, 210],
      ['no-store', 209, 210],
      ['s-max-age=1, x-max-age=1', 209, 210],
    ] as const) {
      provider = await startProvider(
        publishing([first.publicJwk], { 'cache-control': cacheControl }),
      )
      const { find, advance, settled } = keySetOn(provider.url)
      await find(first)
      advance(stillFresh)
      await find(first)
      await settled()
      expect(provider.hits, cacheControl).toBe(1)
      advance(renewed - stillFresh)
      await find(first)
      await settled()
      expect(provider.hits, cacheControl).toBe(2)
      await provider.close()
    }
    provider = await startProvider(one)
  })

  it('a thousand unknown kids, a hundred at a time, make one fetch per cool-down [R07, S07]', async () => {
    provider = await startProvider(one)
    const { find, advance } = keySetOn(provider.url)
    await find(first)
    advance(31)
    const storm = async () => {
      for (let batch = 0; batch < 10; batch++) {
        const kids = Array.from({ length: 100 }, (_, index) => unknown(`x${batch}-${index}`))
        const found = await Promise.all([...kids.map(find), find(first)])
        expect(found.pop()).toBe('ok')
        expect(new Set(found)).toEqual(new Set(['token_rejected:kid_unknown']))
      }
    }
    await storm()
    expect(provider.hits).toBe(2)
    advance(29)
    await storm()
    expect(provider.hits).toBe(2)
    advance(1)
    await storm()
    expect(provider.hits).toBe(3)
  })

  it('known keys do not wait for the fetch for unknown ones [R07, S07]', async () => {
    provider = await startProvider(one)
    const { find, advance } = keySetOn(provider.url)
    await find(first)
    provider.behavior = hanging
    advance(31)
    const order: string[] = []
    const looking = find(unknown('x')).then((found) => order.push(found))
    await find(first).then((found) => order.push(found))
    await looking
    expect(order).toEqual(['ok', 'key_set:timeout'])
  })

  it('while the provider fails, known keys serve for a day, and an unknown key is an outage [R09]', async () => {
    for (const failing of [refusing, hanging, respondingWith('', 500)]) {
      provider = await startProvider(one)
      const { find, advance, settled, keySet } = keySetOn(provider.url)
      await find(first)
      provider.behavior = failing
      advance(300)
      expect(await find(first)).toBe('ok')
      expect(provider.hits).toBe(2)
      // Backoff: no request fetches, and none waits.
      for (let request = 0; request < 20; request++) expect(await find(first)).toBe('ok')
      expect(await find(second)).toMatch(/^key_set:(refused|timeout)$/)
      expect(provider.hits).toBe(2)
      advance(40)
      expect(await find(second)).toMatch(/^key_set:(refused|timeout)$/)
      expect(provider.hits).toBe(3)
      advance(86_400 - 341)
      expect(await find(first)).toBe('ok')
      await settled()
      advance(31)
      expect(await find(first)).toMatch(/^key_set:(refused|timeout)$/)
      provider.behavior = both
      advance(31)
      await expect(keySet.ready()).resolves.toBeUndefined()
      expect(await find(second)).toBe('ok')
      await provider.close()
    }
    provider = await startProvider(one)
  })

  it('an outage has Retry-After, and the fetches back off exponentially [R09]', async () => {
    provider = await startProvider(refusing)
    const { keySet, advance } = keySetOn(provider.url, { random: () => 0.999 })
    for (let second = 0; second < 300; second++) {
      const error = await keySet.find({ kid: 'a', alg: 'ES256' }).catch((thrown) => thrown)
      expect(error).toBeInstanceOf(Unavailable)
      expect(error.retryAfterSeconds).toBeGreaterThanOrEqual(1)
      expect(error.retryAfterSeconds).toBeLessThanOrEqual(30)
      advance(1)
    }
    // 1, 2, 4, 8, 16, then every 30 s.
    expect(provider.hits).toBeGreaterThanOrEqual(13)
    expect(provider.hits).toBeLessThanOrEqual(15)
    provider.behavior = one
    advance(30)
    await expect(keySet.ready()).resolves.toBeUndefined()
  })

  it('a new key works at once after half a minute without a fetch, and within the cool-down at the latest [R11]', async () => {
    provider = await startProvider(one)
    const { find, advance } = keySetOn(provider.url)
    await find(first)
    provider.behavior = both
    advance(29)
    expect(await find(second)).toBe('token_rejected:kid_unknown')
    advance(1)
    expect(await find(second)).toBe('ok')
    expect(await find(first)).toBe('ok')
    expect(provider.hits).toBe(2)
  })

  it('a key that is used just before its publication works one cool-down later [R11]', async () => {
    provider = await startProvider(one)
    const { find, advance } = keySetOn(provider.url)
    await find(first)
    advance(31)
    expect(await find(second)).toBe('token_rejected:kid_unknown')
    expect(provider.hits).toBe(2)
    provider.behavior = both
    advance(29)
    expect(await find(second)).toBe('token_rejected:kid_unknown')
    expect(provider.hits).toBe(2)
    advance(1)
    expect(await find(second)).toBe('ok')
    expect(provider.hits).toBe(3)
  })

  it('the first key of another algorithm works for tokens without a kid as well [R11]', async () => {
    const rsa = await createSigner('RS256', 'r')
    provider = await startProvider(one)
    const { find, advance } = keySetOn(provider.url)
    await find(first)
    const nameless = { kid: undefined, alg: 'RS256' } as const
    expect(await find(nameless)).toBe('token_rejected:kid_missing')
    provider.behavior = publishing([first.publicJwk, rsa.publicJwk])
    advance(30)
    expect(await find(nameless)).toBe('ok')
    expect(provider.hits).toBe(2)
  })

  it('a removed key is refused within five minutes, even without requests in between [R11]', async () => {
    provider = await startProvider(both)
    const { find, advance, keySet } = keySetOn(provider.url)
    const key = await keySet.find({ kid: 'a', alg: 'ES256' })
    expect(keySet.isCurrent(key)).toBe(true)
    provider.behavior = publishing([second.publicJwk])
    advance(209)
    expect(keySet.isCurrent(key)).toBe(true)
    advance(1)
    expect(keySet.isCurrent(key)).toBe(false)
    advance(87)
    expect(await find(first)).toBe('token_rejected:kid_unknown')
    expect(keySet.isCurrent(key)).toBe(false)
  })

  it('a renewal delays no request for longer than its lease if its own request was cancelled', async () => {
    provider = await startProvider(one)
    const { find, advance } = keySetOn(provider.url, { timeoutMs: 600_000 })
    await find(first)
    provider.behavior = hanging
    advance(210)
    expect(await find(first)).toBe('ok')
    await expect.poll(() => provider.hits).toBe(2)
    provider.behavior = both
    advance(2)
    expect(await find(first)).toBe('ok')
    advance(1)
    expect(await find(first)).toBe('ok')
    await expect.poll(() => provider.hits).toBe(3)
    await expect.poll(() => find(second)).toBe('ok')
    expect(provider.hits).toBe(3)
  })
})
