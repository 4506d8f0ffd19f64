import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestHarness } from 'wrangler'
import { keySetOn, publishing, refusing, startProvider } from './provider.ts'
import { createSigner } from './signer.ts'

const signer = await createSigner('ES256')
const keys = [signer.publicJwk]

/** Two isolates without `nodejs_compat`, which share only the Cache API. */
const harness = createTestHarness({
  root: fileURLToPath(new URL('../../..', import.meta.url).href),
  workers: ['first', 'second'].map((name) => ({
    config: {
      name,
      main: 'test/access/tokens/workers/verifier.ts',
      compatibility_date: '2026-11-17',
    },
  })),
})

beforeAll(() => harness.listen())
afterAll(() => harness.close())

/** Sends requests to an isolate that has not cached this provider. */
function isolateOf(name: 'first' | 'second', jwksUri: string) {
  const worker = harness.getWorker(name)
  async function send(path: string, headers: Record<string, string>, init: { body?: string } = {}) {
    const response = await worker.fetch(`http://gateway.test/${path}`, {
      ...init,
      method: 'POST',
      headers: { 'x-jwks-uri': jwksUri, ...headers },
    })
    return `${response.status} ${await response.text()}`
  }
  return {
    verify: (token: string) => send('', { authorization: `Bearer ${token}` }),
    poison: (body: string) => send('poison', {}, { body }),
  }
}

describe('the shared cache of key sets', () => {
  it('serves keys to a second isolate, and missing keys are fetched [R08, R30]', async () => {
    const provider = await startProvider(publishing(keys))
    const first = isolateOf('first', provider.url)
    expect(await first.verify(await signer.token())).toBe('200 alice')
    provider.behavior = refusing
    const second = isolateOf('second', provider.url)
    expect(await second.verify(await signer.token())).toBe('200 alice')
    expect(provider.hits).toBe(1)
    await provider.close()
  })

  it('downloads bypass HTTP caches, so that an old copy never hides a published key [R11]', async () => {
    const cacheControls: (string | undefined)[] = []
    const provider = await startProvider((response, request) => {
      cacheControls.push(request.headers['cache-control'])
      publishing(keys)(response, request)
    })
    expect(await isolateOf('first', provider.url).verify(await signer.token())).toBe('200 alice')
    expect(await keySetOn(provider.url).find(signer)).toBe('ok')
    expect(cacheControls).toEqual(['no-cache', 'no-cache'])
    await provider.close()
  })

  it('content of the shared cache is checked like a download [R10]', async () => {
    const weak = keys.map((key) => ({ ...key, use: 'enc' }))
    for (const text of [
      '<html>',
      '{"keys":[]}',
      JSON.stringify({ keys: weak }),
      '['.repeat(10_000),
      '',
    ]) {
      const provider = await startProvider(publishing(keys))
      const isolate = isolateOf('first', provider.url)
      expect(await isolate.poison(text)).toBe('200 poisoned')
      expect(await isolate.verify(await signer.token()), text.slice(0, 20)).toBe('200 alice')
      expect(provider.hits).toBe(1)
      await provider.close()
    }
  })
})
