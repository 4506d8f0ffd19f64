/**
 * The duration of a response reveals nothing about secrets and existing clients. These tests compare the
 * work, not the time: the calls, their order, and the bytes that they process.
 */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createDpopNonces } from '../../../src/access/tokens/dpop-nonce.ts'
import type { Client } from '../../../src/features/authorization-server/client.ts'
import { createClientAssertionVerifier } from '../../../src/features/authorization-server/client-assertion.ts'
import {
  clientSecretHash,
  isClientSecret,
  newClientSecret,
} from '../../../src/features/authorization-server/client-secret.ts'
import { ASSERTION_ALGORITHMS } from '../../../src/features/authorization-server/schemas/client.ts'
import { traceOf } from '../../harness/work-trace.ts'
import { startGateway, type TestGateway } from './gateway.ts'

const GRANT = { grant_type: 'client_credentials' }
const NOW_MS = Date.UTC(2026, 10, 22)

const clientWith = (members: Partial<Client>) =>
  ({ id: 'c', secrets: [], disabled: false, jwks: undefined, ...members }) as Client

/** A SHA-256 hash in base64url, or the decoy of an unknown client. */
const HASH = /^[\w-]{43}$/

/**
 * The calls of an action, and the characters of hashes that it reads. Other code of this process may
 * read other texts meanwhile.
 */
async function workOf(action: () => Promise<unknown>) {
  const read = vi.spyOn(String.prototype, 'charCodeAt')
  try {
    const calls = await traceOf(action)
    const comparedCharacters = read.mock.contexts.filter((text) => HASH.test(String(text))).length
    return { calls, comparedCharacters }
  } finally {
    read.mockRestore()
  }
}

describe('secrets of clients [S26]', () => {
  const secret = newClientSecret()

  test('cost the same work for a known, unknown, disabled or secretless client', async () => {
    const secrets = [await clientSecretHash(newClientSecret())]
    const workFor = (client: Client | undefined) =>
      workOf(() => isClientSecret(client, secret, NOW_MS))
    const expected = await workFor(clientWith({ secrets }))
    expect(expected.calls).toEqual([expect.stringMatching(/^digest SHA-256, \d+ bytes$/)])
    expect(expected.comparedCharacters).toBeGreaterThan(80)
    expect(await workFor(undefined)).toEqual(expected)
    expect(await workFor(clientWith({ secrets, disabled: true }))).toEqual(expected)
    expect(await workFor(clientWith({}))).toEqual(expected)
  })

  test('an early return for an unknown client is less work', async () => {
    const client = clientWith({ secrets: [await clientSecretHash(newClientSecret())] })
    const returnsEarly = (known: Client | undefined) =>
      workOf(async () => known !== undefined && isClientSecret(known, secret, NOW_MS))
    expect(await returnsEarly(undefined)).not.toEqual(await returnsEarly(client))
  })

  test('are compared over all characters, at every position of the first difference', async () => {
    const { hash } = await clientSecretHash(secret)
    const changedAt = (at: number) =>
      hash.slice(0, at) + (hash[at] === 'A' ? 'B' : 'A') + hash.slice(at + 1)
    const comparisons = async (stored: string) => {
      const client = clientWith({ secrets: [{ hash: stored, untilSeconds: null }] })
      const spy = vi.spyOn(String.prototype, 'charCodeAt')
      try {
        return {
          same: await isClientSecret(client, secret, NOW_MS),
          // Other code of this process may compare other texts meanwhile.
          comparisons: spy.mock.contexts.filter((text) => [hash, stored].includes(String(text)))
            .length,
        }
      } finally {
        spy.mockRestore()
      }
    }
    const right = await comparisons(hash)
    expect(right.same).toBe(true)
    expect(right.comparisons).toBeGreaterThanOrEqual(2 * hash.length)
    for (let at = 0; at < hash.length; at++)
      expect(await comparisons(changedAt(at)), `first difference at ${at}`).toEqual({
        ...right,
        same: false,
      })
  })
})

describe('assertions of clients [S26]', () => {
  test.each(ASSERTION_ALGORITHMS)(
    'with a wrong %s signature cost the same work for a known, unknown, disabled or keyless client',
    async (alg) => {
      const keys = await Promise.all(
        ['k0', 'k1', 'k2'].map(async (kid) => {
          const { publicKey } = await generateKeyPair(alg, { extractable: true })
          return { ...(await exportJWK(publicKey)), kid, alg }
        }),
      )
      const known = clientWith({ jwks: { keys } as NonNullable<Client['jwks']> })
      const verify = createClientAssertionVerifier({ audiences: ['a'], now: () => NOW_MS })
      const { privateKey } = await generateKeyPair(alg)
      const signed = async (kid: string) => {
        const header = { alg, kid }
        const token = await new SignJWT({ sub: 'c' }).setProtectedHeader(header).sign(privateKey)
        if (alg !== 'RS256' && alg !== 'PS256') return token
        // The number must be small: a signature above the modulus is refused before the
        // verification.
        const at = token.lastIndexOf('.') + 1
        return `${token.slice(0, at)}AAAA${token.slice(at + 4)}`
      }
      const [forged, unknownKey] = [await signed('k1'), await signed('k9')]
      const check =
        (client: Client | undefined, assertion = forged) =>
        () =>
          verify(client, assertion, 'b')
      // The first assertion of an algorithm creates its decoy.
      await check(undefined)()
      const expected = await traceOf(check(known))
      expect(expected.filter((call) => call.startsWith('verify'))).toHaveLength(1)
      expect(expected.filter((call) => call.startsWith('importKey'))).toHaveLength(1)
      expect(await traceOf(check(undefined))).toEqual(expected)
      expect(await traceOf(check({ ...known, disabled: true }))).toEqual(expected)
      expect(await traceOf(check(clientWith({})))).toEqual(expected)
      expect(await traceOf(check(known, unknownKey))).toEqual(expected)
    },
  )
})

describe('MACs [S26]', () => {
  test('of nonces are compared by Web Crypto, which takes constant time', async () => {
    const nonces = createDpopNonces('a secret', () => NOW_MS)
    const nonce = await nonces.current()
    const [counter = '', mac = ''] = nonce.split('.')
    const verify = vi.spyOn(crypto.subtle, 'verify')
    try {
      for (const at of [0, 20, mac.length - 2]) {
        const wrong = mac.slice(0, at) + (mac[at] === 'A' ? 'B' : 'A') + mac.slice(at + 1)
        verify.mockClear()
        expect(await nonces.accepts(`${counter}.${wrong}`)).toBe(false)
        expect(verify).toHaveBeenCalledTimes(1)
      }
      expect(await nonces.accepts(nonce)).toBe(true)
    } finally {
      verify.mockRestore()
    }
  })
})

describe('whole requests to the token endpoint [S26, S45]', () => {
  let gateway: TestGateway
  beforeAll(async () => {
    gateway = await startGateway()
  })
  afterAll(() => gateway.close())

  test('cost the same work for a wrong secret, an unknown and a disabled client', async () => {
    const [known, disabled] = [await gateway.createClient(), await gateway.createClient()]
    await gateway.registry.disable(disabled.id)
    const attempt = (id: string) => async () => {
      const address = gateway.newAddress()
      const { status } = await gateway.token({ id, secret: 'wrong' }, GRANT, { address })
      expect(status).toBe(401)
    }
    // The first request loads the scripts.
    await attempt(known.id)()
    const expected = await traceOf(attempt(known.id))
    expect(expected.filter((call) => call.startsWith('fetch')).length).toBeGreaterThan(0)
    expect(await traceOf(attempt(crypto.randomUUID()))).toEqual(expected)
    expect(await traceOf(attempt(disabled.id))).toEqual(expected)
  })
})
