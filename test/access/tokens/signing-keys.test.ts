import { createLocalJWKSet, jwtVerify, SignJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { generateSigningKey, rotated } from '../../../dev/keys/key-set.ts'
import policy from '../../../portcullis.config.ts'
import {
  activeKey,
  importSigningKey,
  publicKeySet,
  publishedKeys,
  type SigningJwk,
  signingKeyState,
} from '../../../src/access/tokens/signing-keys.ts'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { parseConfig } from '../../../src/features/environment.ts'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import { createGateway } from '../../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { NOW_MS, NOW_SECONDS, outcome } from './signer.ts'

const GATEWAY = 'https://gateway.test'
const SWITCH_SECONDS = 600
const END_SECONDS = SWITCH_SECONDS + 3_600 + 300

const [old, fresh, other] = await Promise.all([
  generateSigningKey('ES256'),
  generateSigningKey('ES256'),
  generateSigningKey('RS256'),
])
/** One key, and the result of one rotation. */
const keys = rotated([old], fresh, NOW_MS)
const at = (seconds: number) => NOW_MS + seconds * 1000
const kids = (set: readonly { kid: string }[]) => set.map(({ kid }) => kid)
const environment = (set: readonly SigningJwk[]) => ({
  UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:9',
  UPSTASH_REDIS_REST_TOKEN: 'x',
  ORIGIN_URL: 'https://origin.test',
  PUBLIC_URL: GATEWAY,
  SIGNING_KEYS: JSON.stringify({ keys: set }),
})

/** Issues a token as the gateway does, signed by its active key of that time. */
async function tokenAt(seconds: number, lifeSeconds = 3_600, set = keys): Promise<string> {
  const jwk = activeKey(set, at(seconds)) as SigningJwk
  const { kid, alg, privateKey } = await importSigningKey(jwk)
  const issuedAt = NOW_SECONDS + seconds
  return new SignJWT({ client_id: 'web' })
    .setProtectedHeader({ typ: 'at+jwt', alg, kid })
    .setIssuer(GATEWAY)
    .setAudience(GATEWAY)
    .setSubject('alice')
    .setJti(`${kid}@${seconds}`)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + lifeSeconds)
    .sign(privateKey)
}

describe('the schedule of signing keys [S46]', () => {
  it('the first key with an nbf in the past and an exp in the future signs', () => {
    const signs = (seconds: number) => activeKey(keys, at(seconds))?.kid
    expect(signs(0)).toBe(old.kid)
    expect(signs(SWITCH_SECONDS - 0.001)).toBe(old.kid)
    expect(signs(SWITCH_SECONDS)).toBe(fresh.kid)
    expect(signs(END_SECONDS)).toBe(fresh.kid)
    const ended = { ...old, exp: NOW_SECONDS }
    expect(activeKey([ended], NOW_MS - 1)?.kid).toBe(old.kid)
    expect(activeKey([ended], NOW_MS)).toBeUndefined()
    expect(activeKey([{ ...fresh, nbf: NOW_SECONDS + 1 }], NOW_MS)).toBeUndefined()
  })

  it('if an algorithm is requested, only its keys sign', () => {
    const set = rotated([old, other], fresh, NOW_MS)
    expect(activeKey(set, at(SWITCH_SECONDS))?.kid).toBe(fresh.kid)
    expect(activeKey(set, at(SWITCH_SECONDS), 'RS256')?.kid).toBe(other.kid)
    expect(activeKey(set, NOW_MS, 'EdDSA')).toBeUndefined()
  })

  it('all keys that have not expired are published, before they sign as well', () => {
    const published = (seconds: number) => kids(publishedKeys(keys, at(seconds)))
    expect(published(0)).toEqual([fresh.kid, old.kid])
    expect(published(END_SECONDS - 0.001)).toEqual([fresh.kid, old.kid])
    expect(published(END_SECONDS)).toEqual([fresh.kid])
  })

  it('each key goes through its states in order', () => {
    const states = (seconds: number) => keys.map((key) => signingKeyState(key, keys, at(seconds)))
    expect(states(0)).toEqual(['next', 'active'])
    expect(states(SWITCH_SECONDS)).toEqual(['active', 'retiring'])
    expect(states(END_SECONDS)).toEqual(['active', 'expired'])
  })

  it('a key is imported once per isolate, and cannot be exported', async () => {
    const first = await importSigningKey(old)
    expect(await importSigningKey(old)).toBe(first)
    expect(first.privateKey.extractable).toBe(false)
  })
})

describe('tokens during a rotation [S46]', () => {
  const clock = { nowMs: NOW_MS }
  const { issuers } = parseConfig(environment(keys))
  const verifierOf = (options: { maxCachedBytes?: number } = {}) =>
    createTokenVerifier({ issuers, now: () => clock.nowMs, ...options })
  const verdict = (verifier: ReturnType<typeof verifierOf>, token: string, seconds: number) => {
    clock.nowMs = at(seconds)
    return outcome(() => verifier.verify(token))
  }

  it('are never refused because of the rotation, whenever they were issued', async () => {
    const [cold, warm] = [verifierOf({ maxCachedBytes: 0 }), verifierOf()]
    for (const issued of [0, SWITCH_SECONDS - 1, SWITCH_SECONDS, SWITCH_SECONDS + 1]) {
      const token = await tokenAt(issued)
      for (const later of [0, 299, 1_800, 3_599]) {
        const when = `issued at ${issued} s, used ${later} s later`
        expect(await verdict(cold, token, issued + later), when).toBe('ok')
        expect(await verdict(warm, token, issued + later), when).toBe('ok')
      }
    }
  })

  it('of an expired key are refused, cached or not', async () => {
    const token = await tokenAt(0, 7_200)
    const [cold, warm] = [verifierOf({ maxCachedBytes: 0 }), verifierOf()]
    expect(await verdict(warm, token, END_SECONDS - 1)).toBe('ok')
    expect(await verdict(cold, token, END_SECONDS - 1)).toBe('ok')
    expect(await verdict(warm, token, END_SECONDS)).toBe('token_rejected:kid_unknown')
    expect(await verdict(cold, token, END_SECONDS)).toBe('token_rejected:kid_unknown')
    const alive = await tokenAt(END_SECONDS)
    expect(await verdict(warm, alive, END_SECONDS)).toBe('ok')
  })

  it('can be verified with the key set of the time of issue', async () => {
    for (const seconds of [0, SWITCH_SECONDS - 1, SWITCH_SECONDS, END_SECONDS]) {
      // A copy may be five minutes old.
      const copy = publicKeySet(publishedKeys(keys, at(Math.max(0, seconds - 300))))
      const { payload } = await jwtVerify(await tokenAt(seconds), createLocalJWKSet(copy), {
        currentDate: new Date(at(seconds)),
      })
      expect(payload.sub).toBe('alice')
    }
  })

  it('of a removed key are refused, and a gateway without an active key is not ready', async () => {
    const token = await tokenAt(0)
    const { issuers } = parseConfig(environment([fresh]))
    const verifier = createTokenVerifier({ issuers, now: () => at(1) })
    expect(await outcome(() => verifier.verify(token))).toBe('token_rejected:kid_unknown')

    const ending = parseConfig(environment([{ ...old, exp: NOW_SECONDS + 10 }]))
    const last = createTokenVerifier({ issuers: ending.issuers, now: () => clock.nowMs })
    clock.nowMs = at(9)
    await last.ready()
    clock.nowMs = at(10)
    expect(await outcome(() => last.ready())).toBe('key_set:refused')
  })
})

describe('GET /.well-known/jwks.json [S46]', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW_MS })
  })

  afterEach(() => {
    vi.useRealTimers()
  })

  it('follows the clock, and so does its ETag', async () => {
    const gateway = createGateway(composeServices(environment(keys), policy, WORKERS), policy)
    const fetchAt = async (seconds: number, etag = '') => {
      vi.setSystemTime(at(seconds))
      const headers = { 'If-None-Match': etag }
      const answer = await gateway.request('/.well-known/jwks.json', { headers })
      const text = await answer.text()
      return { answer, text, etag: answer.headers.get('ETag') ?? '' }
    }
    const first = await fetchAt(0)
    expect(first.answer.status).toBe(200)
    expect(first.answer.headers.get('Cache-Control')).toBe('public, max-age=300')
    expect(kids(JSON.parse(first.text).keys)).toEqual([fresh.kid, old.kid])
    expect((await fetchAt(END_SECONDS - 1, first.etag)).answer.status).toBe(304)
    const last = await fetchAt(END_SECONDS, first.etag)
    expect(last.answer.status).toBe(200)
    expect(kids(JSON.parse(last.text).keys)).toEqual([fresh.kid])
    expect(last.etag).not.toBe(first.etag)
  })

  it('has no private member, for every kind of key', async () => {
    const set = [old, other, await generateSigningKey('EdDSA')]
    const gateway = createGateway(composeServices(environment(set), policy, WORKERS), policy)
    const text = await (await gateway.request('/.well-known/jwks.json')).text()
    const published = JSON.parse(text).keys as Record<string, unknown>[]
    expect(published).toHaveLength(3)
    for (const key of published) {
      for (const member of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k'])
        expect(key).not.toHaveProperty(member)
    }
    for (const { d } of set) expect(text).not.toContain(d)
  })
})
