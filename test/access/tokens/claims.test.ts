import { describe, expect, it } from 'vitest'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { createChecks } from './checks.ts'
import {
  AUDIENCE,
  createSigner,
  goodClaims,
  ISSUER,
  issuerOf,
  NOW_MS,
  NOW_SECONDS,
  outcome,
  type Signer,
} from './signer.ts'

const { signer, verify, check, checkText, checkAt } = await createChecks()
const other = await createSigner('ES256', 'other')

describe('verified claims', () => {
  it('become a principal', async () => {
    expect(
      await verify({
        client_id: 'web',
        tenant: 'acme',
        sid: 's1',
        roles: ['reader'],
        scope: 'a b',
      }),
    ).toEqual({
      issuer: ISSUER,
      tokenIssuer: ISSUER,
      subject: 'alice',
      client: 'web',
      tenant: 'acme',
      session: 's1',
      roles: ['reader'],
      scopes: ['a', 'b'],
      audiences: [AUDIENCE],
      scopeUse: 'narrow',
      tokenId: 'token-1',
      tokenIdHash: expect.stringMatching(/^[\w-]{43}$/),
      confirmation: undefined,
      issuedAtSeconds: NOW_SECONDS,
      expiresAtSeconds: NOW_SECONDS + 300,
    })
  })

  it('iss is compared exactly, and selects its own keys [S12]', async () => {
    for (const iss of [
      'https://idp.test',
      'https://idp.test//',
      'https://IDP.test/',
      'https://idp.tеst/',
      'http://idp.test/',
      [ISSUER],
      { toString: ISSUER },
      null,
      undefined,
      '',
      'constructor',
      '__proto__',
      1,
    ]) {
      expect(await check({ iss }), JSON.stringify(iss)).toBe('token_rejected:iss')
    }
    const issuers = [
      issuerOf([signer.publicJwk]),
      issuerOf([other.publicJwk], { issuer: 'https://other.test/' }),
    ]
    const both = createTokenVerifier({ issuers, now: () => NOW_MS })
    const result = async (s: Signer, iss: string) =>
      outcome(async () => both.verify(await s.token({ iss })))
    expect(await result(other, 'https://other.test/')).toBe('ok')
    expect(await result(other, ISSUER)).toBe('token_rejected:kid_unknown')
    expect(await result(signer, 'https://other.test/')).toBe('token_rejected:kid_unknown')
  })

  it('aud must contain the complete name of the gateway [S13]', async () => {
    for (const aud of [AUDIENCE, [AUDIENCE], ['x', AUDIENCE]])
      expect(await check({ aud })).toBe('ok')
    for (const aud of [
      undefined,
      null,
      '',
      'https://api',
      'https://api.test/',
      `${AUDIENCE} x`,
      [],
      ['x'],
      [[AUDIENCE]],
      [AUDIENCE, 1],
      { 0: AUDIENCE },
      { [AUDIENCE]: true },
      1,
      true,
    ]) {
      expect(await check({ aud }), JSON.stringify(aud)).toBe('token_rejected:aud')
    }
    expect(await check({ aud: 'b' }, { audience: ['a', 'b'] })).toBe('ok')
    expect(await check({ aud: 'ab' }, { audience: ['a', 'b'] })).toBe('token_rejected:aud')
  })

  it('exp is required, a finite number, and not too far in the future [S14]', async () => {
    expect(await check({ exp: NOW_SECONDS + 60.5 })).toBe('ok')
    for (const exp of [
      undefined,
      null,
      '9999999999',
      `${NOW_SECONDS + 60}`,
      -1,
      0,
      true,
      [NOW_SECONDS + 60],
      {},
      NOW_SECONDS - 6,
      2 ** 53 + 1,
      Number.MAX_VALUE,
      NOW_SECONDS + 1e12,
    ]) {
      expect(await check({ exp }), String(exp)).toBe('token_rejected:exp')
    }
    const text = (exp: string) =>
      checkText(JSON.stringify(goodClaims).replace(/"exp":\d+/, `"exp":${exp}`))
    expect(await text('1e400')).toBe('token_rejected:exp')
    expect(await text('-1e400')).toBe('token_rejected:exp')
    expect(await text('NaN')).toBe('token_rejected:payload_json')
    expect(await text('Infinity')).toBe('token_rejected:payload_json')
    expect(await text(`${NOW_SECONDS + 9}e0`)).toBe('ok')
    expect(await check({ exp: NOW_SECONDS + 86_400 })).toBe('ok')
    expect(await check({ exp: NOW_SECONDS + 86_401 })).toBe('token_rejected:lifetime')
    expect(await check({ exp: NOW_SECONDS + 61 }, { maxTokenAge: 60 })).toBe(
      'token_rejected:lifetime',
    )
  })

  it('the limits of time have the configured tolerance, to the millisecond [S15]', async () => {
    expect(await checkAt(304_999)).toBe('ok')
    expect(await checkAt(305_000)).toBe('token_rejected:exp')
    expect(await checkAt(-5_000)).toBe('ok')
    expect(await checkAt(-5_001)).toBe('token_rejected:iat')
    expect(await checkAt(0, { nbf: NOW_SECONDS + 5 })).toBe('ok')
    expect(await checkAt(-1, { nbf: NOW_SECONDS + 5 })).toBe('token_rejected:nbf')
    expect(await checkAt(0, { nbf: NOW_SECONDS + 6 })).toBe('token_rejected:nbf')
    expect(await checkAt(0, { iat: NOW_SECONDS + 6 })).toBe('token_rejected:iat')
    expect(await checkAt(0, { iat: NOW_SECONDS + 3, exp: NOW_SECONDS + 2 })).toBe(
      'token_rejected:lifetime',
    )
    expect(await check({ iat: NOW_SECONDS, exp: NOW_SECONDS })).toBe('ok')
    for (const bad of ['1', -1, {}, true]) {
      expect(await check({ nbf: bad })).toBe('token_rejected:nbf')
      expect(await check({ iat: bad })).toBe('token_rejected:iat')
    }
    expect(await check({ iat: null })).toBe('token_rejected:iat')
    expect(await check({ iat: undefined })).toBe('token_rejected:iat')
  })

  it('a claim with the name "undefined" does not replace a missing claim', async () => {
    const { tenant, session } = await verify({ undefined: 'other' })
    expect([tenant, session]).toEqual([undefined, undefined])
  })

  it('a fraction of iat is rounded down, so that a cutoff refuses in case of doubt [S15]', async () => {
    expect((await verify({ iat: NOW_SECONDS - 0.25 })).issuedAtSeconds).toBe(NOW_SECONDS - 1)
  })
})
