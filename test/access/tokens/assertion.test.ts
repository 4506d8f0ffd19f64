import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/access/principal.ts'
import { createAssertionSigner } from '../../../src/access/tokens/assertion.ts'
import {
  importSigningKey,
  parseSigningKeys,
  publicKeySet,
} from '../../../src/access/tokens/signing-keys.ts'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { parseConfig } from '../../../src/features/environment.ts'
import { createSigner, NOW_MS, NOW_SECONDS, outcome } from './signer.ts'

const GATEWAY = 'https://gateway.test'
const ORIGIN = 'https://origin.test'
const signers = await Promise.all([
  createSigner('ES256', 'e'),
  createSigner('RS256', 'r'),
  createSigner('EdDSA', 'd'),
])
const keys = parseSigningKeys({ keys: signers.map(({ privateJwk }) => privateJwk) })
const [key] = keys as [(typeof keys)[number]]

const principal = (overrides: Partial<Principal> = {}): Principal => ({
  issuer: 'https://idp.test/',
  tokenIssuer: 'https://idp.test/',
  subject: 'alice',
  client: 'web',
  tenant: 'acme',
  session: 's1',
  roles: ['reader', 'Domain Admins'],
  scopes: ['a', 'b'],
  tokenId: 'secret-jti',
  tokenIdHash: 'h',
  confirmation: undefined,
  issuedAtSeconds: NOW_SECONDS,
  expiresAtSeconds: NOW_SECONDS + 300,
  ...overrides,
})

function signing(options: { key?: typeof key } = {}) {
  const clock = { nowMs: NOW_MS }
  const signer = createAssertionSigner({
    keys: [options.key ?? key],
    issuer: GATEWAY,
    audience: ORIGIN,
    now: () => clock.nowMs,
  })
  return { clock, signer }
}

describe('the assertion for the origin', () => {
  it('is signed by the key that is active at that time [S46]', async () => {
    const [next, last] = keys as [typeof key, typeof key]
    const clock = { nowMs: NOW_MS }
    const signer = createAssertionSigner({
      keys: [
        { ...next, nbf: NOW_SECONDS + 600 },
        { ...last, exp: NOW_SECONDS + 900 },
      ],
      issuer: GATEWAY,
      audience: ORIGIN,
      now: () => clock.nowMs,
    })
    const kid = async () => decodeProtectedHeader(await signer.sign(principal())).kid
    expect(await kid()).toBe(last.kid)
    clock.nowMs += 600_000
    expect(await kid()).toBe(next.kid)
  })

  it('is not signed by a key before its nbf or after its exp', async () => {
    for (const time of [{ nbf: NOW_SECONDS + 1 }, { exp: NOW_SECONDS }]) {
      const { signer } = signing({ key: { ...key, ...time } })
      await expect(signer.sign(principal())).rejects.toThrow('signing_keys: no_key')
    }
  })

  it.each(keys)(
    'an independent verifier accepts it with the published key ($alg) [S59]',
    async (key) => {
      const { signer } = signing({ key })
      const { payload, protectedHeader } = await jwtVerify(
        await signer.sign(principal()),
        createLocalJWKSet(publicKeySet(keys)),
        {
          issuer: GATEWAY,
          audience: ORIGIN,
          typ: 'origin-assertion+jwt',
          currentDate: new Date(NOW_MS),
        },
      )
      expect(protectedHeader).toEqual({ alg: key.alg, kid: key.kid, typ: 'origin-assertion+jwt' })
      expect(payload).toEqual({
        iss: GATEWAY,
        aud: ORIGIN,
        sub: 'alice',
        sub_iss: 'https://idp.test/',
        client_id: 'web',
        scope: 'a b',
        roles: ['reader', 'Domain Admins'],
        tenant: 'acme',
        sid: 's1',
        iat: NOW_SECONDS,
        exp: NOW_SECONDS + 60,
        jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      })
    },
  )

  it('omits claims that the caller does not have', async () => {
    const bare = principal({
      client: undefined,
      tenant: undefined,
      session: undefined,
      roles: [],
      scopes: [],
    })
    const claims = decodeJwt(await signing().signer.sign(bare))
    expect(Object.keys(claims).sort()).toEqual([
      'aud',
      'exp',
      'iat',
      'iss',
      'jti',
      'sub',
      'sub_iss',
    ])
  })

  it('has the login and the claims that the policy chose, as their headers have them', async () => {
    const claims = decodeJwt(
      await signing().signer.sign(
        principal({
          login: { acr: 'mfa', amr: ['pwd', 'otp'], authTimeSeconds: NOW_SECONDS - 60 },
          headers: [
            ['x-auth-email', 'alice%40example.com'],
            ['x-auth-groups', 'staff,sales'],
          ],
        }),
      ),
    )
    expect(claims).toMatchObject({
      acr: 'mfa',
      amr: ['pwd', 'otp'],
      auth_time: NOW_SECONDS - 60,
      headers: { 'x-auth-email': 'alice%40example.com', 'x-auth-groups': 'staff,sales' },
    })
  })

  it('omits chosen claims that would make the header too large for servers', async () => {
    const headers: Principal['headers'] = [
      ['x-auth-email', 'alice%40example.com'],
      ['x-auth-groups', 'g'.repeat(2_048)],
    ]
    const assertion = await signing().signer.sign(principal({ headers }))
    expect(decodeJwt(assertion)).not.toHaveProperty('headers')
    expect(assertion.length).toBeLessThan(4_096)
  })

  it('is refused by gateways, though the same key signs access tokens [S11, S59]', async () => {
    const config = parseConfig({
      UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1',
      UPSTASH_REDIS_REST_TOKEN: crypto.randomUUID(),
      ORIGIN_URL: ORIGIN,
      PUBLIC_URL: GATEWAY,
      SIGNING_KEYS: JSON.stringify({ keys: signers.map(({ privateJwk }) => privateJwk) }),
    })
    const verifier = createTokenVerifier({ issuers: config.issuers, now: () => NOW_MS })
    const assertion = await createAssertionSigner({
      keys,
      issuer: GATEWAY,
      audience: GATEWAY,
      now: () => NOW_MS,
    }).sign(principal())
    expect(await outcome(() => verifier.verify(assertion))).toBe('token_rejected:typ')
    for (const signer of signers) {
      const token = await signer.token({ iss: GATEWAY, aud: GATEWAY })
      expect(await outcome(() => verifier.verify(token)), signer.alg).toBe('ok')
    }
  })

  it('is signed once per half minute for each principal, and always valid for at least 30 s more', async () => {
    const { clock, signer } = signing()
    const [alice, bob] = [principal(), principal({ subject: 'bob' })]
    const first = await signer.sign(alice)
    expect(decodeJwt(await signer.sign(bob)).sub).toBe('bob')
    for (const elapsedMs of [0, 999, 29_999, 30_000]) {
      clock.nowMs = NOW_MS + elapsedMs
      expect(await signer.sign(alice)).toBe(first)
    }
    clock.nowMs = NOW_MS + 30_001
    const second = await signer.sign(alice)
    expect(second).not.toBe(first)
    expect(decodeJwt(second).exp).toBe(NOW_SECONDS + 90)
    expect(decodeJwt(second).jti).not.toBe(decodeJwt(first).jti)
  })

  it('is never shared by two principals, however similar they are', async () => {
    const { signer } = signing()
    expect(await signer.sign(principal())).not.toBe(await signer.sign(principal()))
  })
})

describe('the signing keys', () => {
  it('publish no private member [S46]', () => {
    const published = publicKeySet(keys)
    for (const jwk of published.keys) {
      expect(Object.keys(jwk)).toEqual(
        expect.not.arrayContaining(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'key_ops']),
      )
    }
    const secrets = signers
      .flatMap(({ privateJwk: { d, p, q } }) => [d, p, q])
      .filter((member) => member !== undefined)
    expect(secrets).toHaveLength(5)
    for (const secret of secrets) expect(JSON.stringify(published)).not.toContain(secret)
  })

  it('cannot be exported after their import', async () => {
    const { privateKey } = await importSigningKey(key)
    expect(privateKey.extractable).toBe(false)
    expect(decodeProtectedHeader(await signing().signer.sign(principal()))).toMatchObject({
      kid: 'e',
    })
  })

  it('are refused if the private and public parts do not match [S47]', async () => {
    const other = await createSigner('EdDSA', 'x')
    const [mixed] = parseSigningKeys({
      keys: [{ ...signers[2]?.privateJwk, x: other.publicJwk.x }],
    })
    expect(mixed).toBeDefined()
    if (mixed !== undefined) {
      await expect(importSigningKey(mixed)).rejects.toThrow('is not a key pair')
      await expect(signing({ key: mixed }).signer.sign(principal())).rejects.toThrow(
        'signing_keys: no_key',
      )
    }
  })
})
