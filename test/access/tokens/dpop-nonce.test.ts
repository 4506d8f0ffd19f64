import { describe, expect, it } from 'vitest'
import { nonceSecretOf } from '../../../src/access/tokens/dpop.ts'
import type { SigningJwk } from '../../../src/access/tokens/signing-keys.ts'
import { Denied } from '../../../src/errors.ts'
import { createProver, goodRequest, outcome, verifierOf } from './prover.ts'
import { createSigner, NOW_MS } from './signer.ts'

const prover = await createProver()
const secretOf = async () => (await createSigner('ES256')).privateJwk.d as string
const nonceSecret = await secretOf()
/** RFC 9449 section 8.1: the characters allowed in `DPoP-Nonce`. */
const NQCHAR = /^[\x21\x23-\x5b\x5d-\x7e]+$/

/** Creates a gateway with a clock that is `laterSeconds` ahead. */
function gateway(laterSeconds = 0, options: Parameters<typeof verifierOf>[0] = {}) {
  const now = () => NOW_MS + laterSeconds * 1000
  const verifier = verifierOf({ nonceSecret, nonceRequired: true, now, ...options })
  const check = async (nonce: string | undefined) => {
    const header = await prover.proof({ nonce, iat: now() / 1000 })
    return outcome(() => verifier.verify({ ...goodRequest, header }))
  }
  return { verifier, check }
}

describe('check 10: nonces', () => {
  it('are accepted by every gateway for five minutes, and not for seven', async () => {
    const nonce = await gateway().verifier.nonce()
    expect(nonce).toMatch(NQCHAR)
    for (const later of [-5, 0, 60, 299, 300])
      expect(await gateway(later).check(nonce), `${later} s`).toBe('ok')
    for (const later of [-121, 361, 420, 86_400])
      expect(await gateway(later).check(nonce), `${later} s`).toBe('use_dpop_nonce')
  })

  it('change every minute, and not in between', async () => {
    const [one, same, next] = await Promise.all(
      [0, 59, 60].map((later) => gateway(later).verifier.nonce()),
    )
    expect(same).toBe(one)
    expect(next).not.toBe(one)
  })

  it('are returned with the refusal of a missing or wrong one', async () => {
    const { verifier } = gateway()
    const [counter, mac = ''] = (await verifier.nonce()).split('.')
    const flipped = `${mac[0] === 'A' ? 'B' : 'A'}${mac.slice(1)}`
    const foreign = await gateway(0, { nonceSecret: await secretOf() }).verifier.nonce()
    for (const nonce of [
      undefined,
      '',
      '.',
      'x',
      foreign,
      counter,
      `${counter}.`,
      `${counter}.${flipped}`,
      `${counter}.${mac.slice(1)}`,
      `0${counter}.${mac}`,
      `zzzzzzzzzzzz.${mac}`,
    ]) {
      const header = await prover.proof({ nonce })
      const refusal = await verifier.verify({ ...goodRequest, header }).catch((error) => error)
      expect(refusal, nonce).toBeInstanceOf(Denied)
      expect(refusal.denial).toEqual({ code: 'use_dpop_nonce', nonce: expect.any(String) })
      expect(await gateway().check(refusal.denial.nonce)).toBe('ok')
    }
  })

  it('are optional if they are not required, but a present one must be valid', async () => {
    const { verifier, check } = gateway(0, { nonceRequired: false })
    expect(await check(undefined)).toBe('ok')
    expect(await check(await verifier.nonce())).toBe('ok')
    expect(await check('x')).toBe('use_dpop_nonce')
  })

  it('do not exist without a secret, and then a nonce in a proof is ignored', async () => {
    const { verifier, check } = gateway(0, { nonceSecret: undefined, nonceRequired: false })
    expect(await check('of another gateway')).toBe('ok')
    await expect(verifier.nonce()).rejects.toThrow('has no secret')
  })

  it('do not make an otherwise invalid proof valid', async () => {
    const { verifier } = gateway()
    const header = await prover.proof({ nonce: await verifier.nonce(), htm: 'POST' })
    const attempt = () => verifier.verify({ ...goodRequest, header })
    expect(await outcome(attempt)).toBe('invalid_dpop_proof:htm')
  })

  it('survive a change of keys: the new key is added at the front', async () => {
    const [old, fresh] = await Promise.all([createSigner('ES256', 'a'), createSigner('ES256', 'b')])
    const keys = [fresh, old].map(({ privateJwk }) => privateJwk as unknown as SigningJwk)
    expect(nonceSecretOf(keys)).toBe(nonceSecretOf(keys.slice(1)))
    expect(nonceSecretOf(keys)).toBe(old.privateJwk.d)
    expect(nonceSecretOf([])).toBeUndefined()
  })
})
