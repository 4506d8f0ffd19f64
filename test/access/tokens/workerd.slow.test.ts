import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Running, startWorkerd } from '../../origin/workerd.ts'
import { hanging, publishing, respondingWith, startProvider } from './provider.ts'
import { createSigner } from './signer.ts'

const signer = await createSigner('ES256')
const signers = [
  signer,
  await createSigner('RS256'),
  await createSigner('EdDSA'),
  await createSigner('Ed25519'),
]
const keys = signers.map(({ publicJwk }) => publicJwk)

/** Without `nodejs_compat` and without a Cache API, as in a Worker without configuration for it. */
let worker: Running
beforeAll(async () => {
  worker = await startWorkerd({ entry: join(import.meta.dirname, 'workers/verifier.ts'), vars: {} })
})
afterAll(() => worker.stop())

/** Sends requests to a verifier that has not cached this provider. */
const isolateOf = (jwksUri: string) => ({
  async verify(token: string, path = '', signal?: AbortSignal) {
    const response = await fetch(`http://127.0.0.1:${worker.port}/${path}`, {
      headers: { authorization: `Bearer ${token}`, 'x-jwks-uri': jwksUri },
      ...(signal && { signal }),
    })
    return `${response.status} ${await response.text()}`
  },
})

describe('the token verifier in workerd', () => {
  it('verifies every default algorithm, and refuses a forged signature', async () => {
    const provider = await startProvider(publishing(keys))
    const isolate = isolateOf(provider.url)
    for (const signer of signers) {
      const token = await signer.token()
      expect(await isolate.verify(token), signer.alg).toBe('200 alice')
      const forged = token.replace(/\.[^.]{4}([^.]*)$/, '.AAAA$1')
      expect(await isolate.verify(forged)).toBe('401 {"code":"token_rejected","check":"signature"}')
    }
    expect(provider.hits).toBe(1)
    await provider.close()
  })

  it('makes at most two fetches for fifty simultaneous requests without a cached set [R08]', async () => {
    const provider = await startProvider((response, request) =>
      setTimeout(() => publishing(keys)(response, request), 100),
    )
    const isolate = isolateOf(provider.url)
    const tokens = await Promise.all(
      Array.from({ length: 50 }, (_, n) => signer.token({ jti: `${n}` })),
    )
    const answers = await Promise.all(tokens.map((token) => isolate.verify(token)))
    expect(new Set(answers)).toEqual(new Set(['200 alice']))
    expect(provider.hits).toBeLessThanOrEqual(2)
    await provider.close()
  })

  it('does not block other clients if a client leaves while its request fetches the keys', async () => {
    for (const path of ['', 'mortal']) {
      const provider = await startProvider(hanging)
      const isolate = isolateOf(provider.url)
      const abort = new AbortController()
      const left = isolate.verify(await signer.token(), path, abort.signal).catch(() => 'gone')
      await expect.poll(() => provider.hits).toBe(1)
      abort.abort()
      expect(await left).toBe('gone')
      provider.behavior = publishing(keys)
      const token = await signer.token()
      await expect.poll(() => isolate.verify(token, path)).toBe('200 alice')
      await provider.close()
    }
  })

  it('treats redirects, error pages and silence as outages [R10]', async () => {
    for (const [behavior, fault] of [
      [respondingWith('', 302, { location: '/elsewhere' }), 'refused'],
      [respondingWith('<h1>Oops</h1>', 500), 'refused'],
      [respondingWith('<h1>Hello</h1>'), 'malformed'],
      [respondingWith('x'.repeat(300_000)), 'malformed'],
      [hanging, 'timeout'],
    ] as const) {
      const provider = await startProvider(behavior)
      const isolate = isolateOf(provider.url)
      expect(await isolate.verify(await signer.token())).toBe(`503 key_set: ${fault}`)
      expect(provider.hits).toBe(1)
      await provider.close()
    }
  })
})
