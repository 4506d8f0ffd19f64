/** Timing: durations reveal nothing about secrets and nothing about which clients exist. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Client } from '../../src/oauth/client.ts'
import { createClientAssertionVerifier } from '../../src/oauth/client-assertion.ts'
import { clientSecretHash, isClientSecret, newClientSecret } from '../../src/oauth/client-secret.ts'
import { createDpopNonces } from '../../src/tokens/dpop-nonce.ts'
import { ASSERTION_ALGORITHMS } from '../../src/validators/client.ts'
import { type MedianDifferences, medianDifferences } from '../harness/timing.ts'
import { startGateway, type TestGateway } from './gateway.ts'

// Thousands of measurements, on a machine that other tests use as well.
vi.setConfig({ testTimeout: 180_000 })

const MAX_DIFFERENCE = 0.05
/** Maximum noise; a run above it proves nothing. */
const MAX_NOISE = 0.25
const GRANT = { grant_type: 'client_credentials' }
const NOW_MS = Date.UTC(2026, 10, 22)

const clientWith = (members: Partial<Client>) =>
  ({ id: 'c', secrets: [], disabled: false, jwks: undefined, ...members }) as Client

/** Fails unless each action takes as long as the baseline, within 5 % and the noise of this run. */
function expectEqualTimes({ noise, differences }: MedianDifferences<string>) {
  expect(noise, 'noise').toBeLessThan(MAX_NOISE)
  for (const [name, difference] of Object.entries(differences))
    expect(Math.abs(difference), name).toBeLessThan(MAX_DIFFERENCE + noise)
}

describe('S26: secrets of clients', () => {
  const secret = newClientSecret()
  const rounds = 500

  test('are refused in the same time for a known, unknown, disabled or secretless client', async () => {
    const secrets = [await clientSecretHash(newClientSecret())]
    const check = (client: Client | undefined) => () => isClientSecret(client, secret, NOW_MS)
    const measured = await medianDifferences(
      check(clientWith({ secrets })),
      {
        unknown: check(undefined),
        disabled: check(clientWith({ secrets, disabled: true })),
        secretless: check(clientWith({})),
      },
      rounds,
    )
    expectEqualTimes(measured)
  })

  test('are compared by a measurement that detects an early return for unknown clients', async () => {
    const client = clientWith({ secrets: [await clientSecretHash(newClientSecret())] })
    const check = () => isClientSecret(client, secret, NOW_MS)
    const returnsEarly = async (known: Client | undefined) =>
      known !== undefined && isClientSecret(known, secret, NOW_MS)
    const measured = await medianDifferences(
      check,
      { unknown: () => returnsEarly(undefined) },
      rounds,
    )
    expect(() => expectEqualTimes(measured)).toThrow('unknown')
  })

  test('are compared over all characters, at every position of the first difference', async () => {
    const { hash } = await clientSecretHash(secret)
    const changedAt = (at: number) =>
      hash.slice(0, at) + (hash[at] === 'A' ? 'B' : 'A') + hash.slice(at + 1)
    const looks = async (stored: string) => {
      const client = clientWith({ secrets: [{ hash: stored, untilSeconds: null }] })
      const looked = vi.spyOn(String.prototype, 'charCodeAt')
      try {
        return {
          same: await isClientSecret(client, secret, NOW_MS),
          looks: looked.mock.calls.length,
        }
      } finally {
        looked.mockRestore()
      }
    }
    const right = await looks(hash)
    expect(right.same).toBe(true)
    expect(right.looks).toBeGreaterThanOrEqual(2 * hash.length)
    for (let at = 0; at < hash.length; at++)
      expect(await looks(changedAt(at)), `first difference at ${at}`).toEqual({
        ...right,
        same: false,
      })
  })
})

describe('S26: assertions of clients', () => {
  test.each(ASSERTION_ALGORITHMS)(
    'with a wrong %s signature are refused in the same time for a known, unknown, disabled or keyless client',
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
          verify(client, assertion)
      const measured = await medianDifferences(
        check(known),
        {
          'unknown client': check(undefined),
          'disabled client': check({ ...known, disabled: true }),
          'client without keys': check(clientWith({})),
          'unknown key': check(known, unknownKey),
        },
        100,
      )
      expectEqualTimes(measured)
    },
  )
})

describe('S26: MACs', () => {
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

describe('S26, S45: whole requests to the token endpoint', () => {
  let gateway: TestGateway
  beforeAll(async () => {
    gateway = await startGateway()
  })
  afterAll(() => gateway.close())

  test('are refused in the same time for a wrong secret, an unknown client and a disabled client', async () => {
    const [known, disabled] = [await gateway.createClient(), await gateway.createClient()]
    await gateway.registry.disable(disabled.id)
    const unknown = { id: crypto.randomUUID(), secret: known.secret }
    let requests = 0
    const attempt = (id: string) => async () => {
      // Otherwise failures would be throttled, which is another response.
      if (++requests % 15 === 0) await gateway.forgetFailures()
      const address = gateway.newAddress()
      const { status } = await gateway.token({ id, secret: 'wrong' }, GRANT, { address })
      expect(status).toBe(401)
    }
    const measured = await medianDifferences(
      attempt(known.id),
      { unknown: attempt(unknown.id), disabled: attempt(disabled.id) },
      30,
    )
    expectEqualTimes(measured)
  })
})
