/** The CPU time for the largest tokens and configurations that are accepted. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterEach, expect, test, vi } from 'vitest'
import { createAuthorizer } from '../../../src/access/permissions.ts'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { principal } from '../admission/callers.ts'
import { createSigner, goodClaims, issuerOf, NOW_MS, outcome, type Signer } from './signer.ts'

/** CPU time of one request on Cloudflare's free plan. */
const MAX_CPU_MS = 10
const ROUNDS = 50
const MAX_TOKEN_CHARACTERS = 16_384

afterEach(() => vi.restoreAllMocks())

/**
 * Returns the CPU milliseconds of this process per run, over `ROUNDS` runs: not wall-clock time.
 */
async function cpuMsOf(act: () => unknown): Promise<number> {
  await act()
  const before = process.cpuUsage()
  for (let round = 0; round < ROUNDS; round++) await act()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000 / ROUNDS
}

async function createRsa4096(kid: string) {
  const pair = await generateKeyPair('RS512', { modulusLength: 4_096, extractable: true })
  const sign = (claims: object) =>
    new SignJWT({ ...claims })
      .setProtectedHeader({ alg: 'RS512', kid, typ: 'at+jwt' })
      .sign(pair.privateKey)
  return { publicJwk: { ...(await exportJWK(pair.publicKey)), kid, alg: 'RS512' }, sign }
}

/** Pads a valid token to the maximum length. */
async function largest(sign: (claims: object) => Promise<string>): Promise<string> {
  const { length } = await sign({ ...goodClaims, padding: '' })
  return sign({
    ...goodClaims,
    padding: 'x'.repeat(Math.floor((MAX_TOKEN_CHARACTERS - length) * 0.74)),
  })
}

test('a token of 16 KB with the last of 64 keys, RSA 4096 or P-521, takes one verification and at most 10 ms [R34]', async () => {
  const others = await Promise.all(
    Array.from({ length: 62 }, (_, n) => createSigner('ES256', `other-${n}`)),
  )
  const [rsa, curve] = [await createRsa4096('rsa'), await createSigner('ES512', 'curve')]
  const keys = [...others.map((other: Signer) => other.publicJwk), rsa.publicJwk, curve.publicJwk]
  const issuer = issuerOf(keys as JsonWebKey[], { algorithms: ['ES256', 'ES512', 'RS512'] })
  const verifier = createTokenVerifier({ issuers: [issuer], now: () => NOW_MS, maxCachedBytes: 0 })
  for (const sign of [rsa.sign, (claims: object) => curve.token(claims)]) {
    const token = await largest(sign)
    expect(token.length).toBeGreaterThan(0.95 * MAX_TOKEN_CHARACTERS)
    expect(token.length).toBeLessThanOrEqual(MAX_TOKEN_CHARACTERS)
    expect(await outcome(() => verifier.verify(token))).toBe('ok')
    const checks = vi.spyOn(crypto.subtle, 'verify')
    await verifier.verify(token)
    expect(checks).toHaveBeenCalledTimes(1)
    checks.mockRestore()
    expect(await cpuMsOf(() => verifier.verify(token))).toBeLessThan(MAX_CPU_MS)
  }
})

test('a decision over a role of 10,000 permissions takes at most 10 ms [R34]', async () => {
  const permissions = Array.from({ length: 10_000 }, (_, n) => `area-${n}:read`)
  const isPermitted = createAuthorizer(
    new Map([
      ['all', permissions],
      ['one', ['area-9999:read']],
    ]),
  )
  const caller = principal({ roles: ['one', 'all'] })
  expect(isPermitted(caller, 'area-9999:read')).toBe(true)
  expect(isPermitted(caller, 'area-0:read')).toBe(true)
  expect(isPermitted(caller, 'area-10000:read')).toBe(false)
  expect(isPermitted(principal({ roles: ['one'] }), 'area-0:read')).toBe(false)
  expect(await cpuMsOf(() => isPermitted(caller, 'area-10000:read'))).toBeLessThan(MAX_CPU_MS)
})
