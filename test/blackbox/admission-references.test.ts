/** Opaque tokens, API keys and bound tokens, at two gateways. */
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { revokedTokenKey } from '../../src/access/revocation/revocation.ts'
import { tokenIdHash } from '../../src/access/token-id.ts'
import { newApiKey } from '../../src/access/tokens/api-key.ts'
import type { ReferenceRecord } from '../../src/access/tokens/reference.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { nowSeconds, recordOf } from '../access/admission/callers.ts'
import { ath, createProver } from '../access/tokens/prover.ts'
import { fromAddress, newAddress } from '../harness/address.ts'
import { callsOfRequests, forget, recordsOf } from '../harness/control.ts'
import { ISSUER, mint } from '../harness/issuer.ts'
import { keysOf } from '../harness/stack-redis.ts'

const stack = inject('stack')
const [here, there] = stack.gateways
const redis = keysOf(stack)
const prover = await createProver()

const QUIET_MS = 500
const REPORT = '{"from":"2026-01-01","to":"2026-01-31"}'
const redisCalls = () => callsOfRequests(stack.rest)
const originCalls = async () => (await recordsOf(stack.origin)).length
let publicUrl = ''

const newText = () => crypto.randomUUID()

/** Stores the record of a new subject and returns its credential. */
async function keep(claims: Partial<ReferenceRecord> = {}, create: () => string = newText) {
  const record = recordOf({
    issuer: ISSUER,
    tokenIssuer: publicUrl,
    audiences: [publicUrl],
    roles: ['admin'],
    scopes: [],
    ...claims,
  })
  return { ...(await redis.keep(record, create)), record }
}

/** `POST /reports` is under two limits. */
const send = (gateway: string, credential: string, headers: Record<string, string> = {}) =>
  fetch(`${gateway}/reports`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${credential}`,
      ...fromAddress(newAddress()),
      'content-type': 'application/json',
      ...headers,
    },
    body: REPORT,
  })
const sendBound = async (gateway: string, credential: string, proof?: string) =>
  send(gateway, credential, {
    authorization: `DPoP ${credential}`,
    dpop:
      proof ??
      (await prover.proof({
        jti: crypto.randomUUID(),
        iat: nowSeconds(),
        htm: 'POST',
        htu: `${gateway}/reports`,
        ath: ath(credential),
      })),
  })

beforeAll(async () => {
  const metadata = await fetch(`${here}/.well-known/oauth-protected-resource`)
  publicUrl = ((await metadata.json()) as { resource: string }).resource
  // Waits for the background work of earlier requests.
  await vi.waitFor(
    async () => {
      const before = await redisCalls()
      await new Promise((done) => setTimeout(done, QUIET_MS))
      expect(await redisCalls()).toBe(before)
    },
    { timeout: 30_000 },
  )
  // Loads the scripts into each master, so that no test pays for it.
  const loaded = new Set<number>()
  while (loaded.size < stack.redisUrls.length) {
    const { text, master } = await keep()
    for (const gateway of [here, here, there]) expect((await send(gateway, text)).status).toBe(200)
    loaded.add(master)
  }
})
afterEach(async () => {
  await forget(stack.rest)
  await forget(stack.origin)
})
afterAll(() => redis.disconnect())

describe('round trips under two limits', () => {
  /** Returns the number of calls to the REST endpoint for each of two requests. */
  async function calls(request: () => Promise<Response>): Promise<number[]> {
    const counts: number[] = []
    for (let count = 0; count < 2; count++) {
      await forget(stack.rest)
      const response = await request()
      expect(response.status).toBe(200)
      expect(response.headers.get('ratelimit-policy')).toContain('"expensive"')
      counts.push(await redisCalls())
    }
    return counts
  }

  test('an opaque token costs one call, uncached and cached', async () => {
    const { text } = await keep()
    expect(await calls(() => send(here, text))).toEqual([1, 1])
  })

  test('an API key costs one call, uncached and cached', async () => {
    const { text } = await keep({ kind: 'api_key', expiresAtSeconds: null }, newApiKey)
    expect(await calls(() => send(here, text))).toEqual([1, 1])
  })

  test('an opaque token with a proof of possession costs one call, uncached and cached', async () => {
    const { text } = await keep({ confirmation: prover.thumbprint })
    expect(await calls(() => sendBound(here, text))).toEqual([1, 1])
  })

  test('a JWT with a proof of possession costs one call, uncached and cached', async () => {
    const cnf = { jkt: prover.thumbprint }
    const token = await mint(stack.inlineKey, { claims: { roles: ['admin'], cnf } })
    expect(await calls(() => sendBound(here, token))).toEqual([1, 1])
  })

  test('a malformed credential costs no lookup', async () => {
    const key = newApiKey()
    const mistyped = `pk_${key[3] === 'x' ? 'y' : 'x'}${key.slice(4)}`
    for (const text of [
      mistyped,
      crypto.randomUUID().toUpperCase(),
      'pk_',
      crypto.randomUUID().slice(1),
    ])
      expect((await send(here, text)).status).toBe(401)
    const lookups = (await recordsOf(stack.rest)).filter(({ body }) =>
      body.includes('pc:reference:'),
    )
    expect(lookups).toEqual([])
    expect(await originCalls()).toBe(0)
  })
})

describe('two gateways on one Redis', () => {
  test('a revoked reference is refused by both on the next request, uncached or cached [S30]', async () => {
    const [warm, cold] = [await keep(), await keep()]
    for (const gateway of [here, there]) expect((await send(gateway, warm.text)).status).toBe(200)
    await forget(stack.origin)
    for (const { key, record } of [warm, cold]) {
      const hash = await tokenIdHash(publicUrl, record.tokenId)
      await redis.setFact(revokedTokenKey(DEFAULT_KEYS, hash), '1', 310)
      await redis.del(key)
    }
    for (const gateway of [here, there])
      for (const { text } of [warm, cold]) expect((await send(gateway, text)).status).toBe(401)
    expect(await originCalls()).toBe(0)
  })

  test('another spelling of a revoked reference is refused [S31]', async () => {
    const { text, record } = await keep()
    expect((await send(here, text)).status).toBe(200)
    const hash = await tokenIdHash(publicUrl, record.tokenId)
    await redis.setFact(revokedTokenKey(DEFAULT_KEYS, hash), '1', 310)
    await forget(stack.origin)
    for (const other of [text, text.toUpperCase(), ` ${text}`, `{${text}}`, `urn:uuid:${text}`])
      for (const scheme of ['Bearer', 'bearer', 'DPoP'])
        expect((await send(here, text, { authorization: `${scheme} ${other}` })).status).toBe(401)
    expect(await originCalls()).toBe(0)
  })

  test('a proof used at one gateway is refused by the other, and by itself', async () => {
    const { text } = await keep({ confirmation: prover.thumbprint })
    const proof = await prover.proof({
      jti: crypto.randomUUID(),
      iat: nowSeconds(),
      htm: 'POST',
      htu: `${publicUrl}/reports`,
      ath: ath(text),
    })
    expect((await sendBound(here, text, proof)).status).toBe(200)
    await forget(stack.origin)
    for (const gateway of [there, here]) {
      const replayed = await sendBound(gateway, text, proof)
      expect(replayed.status).toBe(401)
      expect(await replayed.json()).toMatchObject({ code: 'invalid_dpop_proof' })
    }
    expect(await originCalls()).toBe(0)
  })

  test('a bound token without its proof reaches nothing', async () => {
    const { text } = await keep({ confirmation: prover.thumbprint })
    expect((await send(here, text)).status).toBe(401)
    expect((await sendBound(here, text)).status).toBe(200)
    await forget(stack.origin)
    expect((await send(here, text)).status).toBe(401)
    expect(await originCalls()).toBe(0)
  })

  test('the origin receives the subject and its issuer', async () => {
    const { text, record } = await keep({ kind: 'api_key' }, newApiKey)
    for (const gateway of [here, there]) expect((await send(gateway, text)).status).toBe(200)
    for (const { headers } of await recordsOf(stack.origin)) {
      expect(headers['x-auth-subject']).toEqual([record.subject])
      expect(headers['x-auth-issuer']).toEqual([ISSUER])
      expect(headers.authorization).toBeUndefined()
    }
    expect(await originCalls()).toBe(2)
  })
})
