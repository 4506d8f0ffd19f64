import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestHarness } from 'wrangler'
import { keySetOn, publishing, refusing, startProvider } from './provider.ts'
import { createSigner } from './signer.ts'

const signer = await createSigner('ES256')
const keys = [signer.publicJwk]

/** Two isolates without `nodejs_compat`, which share nothing but the Cache API. */
const harness = createTestHarness({
  root: fileURLToPath(new URL('../..', import.meta.url).href),
  workers: ['first', 'second'].map((name) => ({
    config: {
      name,
      main: 'test/tokens/workers/verifier.ts',
      compatibility_date: '2026-11-17',
    },
  })),
})

beforeAll(async () => {
  // Spares a look-up of `Request.cf` on the internet.
  process.env.CLOUDFLARE_CF_FETCH_ENABLED = 'false'
  process.env.WRANGLER_LOG = 'error'
  await harness.listen()
})
afterAll(() => harness.close())

/** Requests to an isolate that has never heard of this provider. */
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
    ask: (token: string) => send('', { authorization: `Bearer ${token}` }),
    poison: (body: string) => send('poison', {}, { body }),
  }
}

describe('the second tier', () => {
  it('R08 R30: a second isolate finds the keys in the cache, and asks for those that are not there', async () => {
    const provider = await startProvider(publishing(keys))
    const first = isolateOf('first', provider.url)
    expect(await first.ask(await signer.token())).toBe('200 alice')
    provider.behaviour = refusing
    const second = isolateOf('second', provider.url)
    expect(await second.ask(await signer.token())).toBe('200 alice')
    expect(provider.hits).toBe(1)
    await provider.close()
  })

  it('R11: downloads pass HTTP caches by, so that a published key is not hidden by an old copy', async () => {
    const asked: (string | undefined)[] = []
    const provider = await startProvider((response, request) => {
      asked.push(request.headers['cache-control'])
      publishing(keys)(response, request)
    })
    expect(await isolateOf('first', provider.url).ask(await signer.token())).toBe('200 alice')
    expect(await keySetOn(provider.url).find(signer)).toBe('ok')
    expect(asked).toEqual(['no-cache', 'no-cache'])
    await provider.close()
  })

  it('R10: what stands in the cache is believed no more than the network', async () => {
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
      expect(await isolate.ask(await signer.token()), text.slice(0, 20)).toBe('200 alice')
      expect(provider.hits).toBe(1)
      await provider.close()
    }
  })
})
