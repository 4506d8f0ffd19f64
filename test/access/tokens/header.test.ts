import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import {
  createSigner,
  encode,
  goodClaims,
  issuerOf,
  NOW_MS,
  outcome,
  type Signer,
} from './signer.ts'

const now = () => NOW_MS
let signer: Signer
let attacker: Signer

beforeAll(async () => {
  ;[signer, attacker] = await Promise.all([createSigner('ES256'), createSigner('ES256')])
})

const check = (token: string, overrides: object = {}) =>
  outcome(() =>
    createTokenVerifier({ issuers: [issuerOf([signer.publicJwk], overrides)], now }).verify(token),
  )

describe('the protected header', () => {
  it('keys in a token are neither used nor fetched [S05]', async () => {
    let hits = 0
    const listener = createServer((_request, response) => {
      hits++
      response.end(JSON.stringify({ keys: [attacker.publicJwk] }))
    })
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/`
    for (const header of [
      { jwk: attacker.publicJwk },
      { jku: url },
      { x5u: url },
      { x5c: ['MIIB'] },
      { jwk: attacker.publicJwk, jku: url, x5u: url, kid: url },
    ]) {
      expect(await check(await attacker.token({}, header))).toMatch(
        /^token_rejected:(signature|kid_unknown)$/,
      )
      // The members are ignored, not refused: the configured key still decides.
      expect(await check(await signer.token({}, { ...header, kid: signer.kid }))).toBe('ok')
    }
    expect(hits).toBe(0)
    listener.close()
  })

  it('a kid is data, whatever it contains [S06]', async () => {
    const strange = [
      '../../dev/null',
      "x' OR '1'='1",
      '__proto__',
      'constructor',
      'toString',
      'hasOwnProperty',
      '鍵🔑',
      'a\r\nX-Evil: 1',
      '\u0000',
      '\ud800',
      ' ES256',
      'ES256 ',
      'es256',
      'a'.repeat(256),
    ]
    for (const kid of strange) {
      expect(await check(await signer.token({}, { kid })), kid).toBe('token_rejected:kid_unknown')
    }
    for (const kid of [
      '',
      'a'.repeat(257),
      'a'.repeat(4096),
      1,
      0,
      true,
      {},
      ['ES256'],
      { toString: 'ES256' },
    ]) {
      expect(await check(await signer.token({}, { kid })), JSON.stringify(kid)).toBe(
        'token_rejected:kid',
      )
    }
    expect(await check(await signer.token({}, { kid: 'a'.repeat(65_536) }))).toBe(
      'token_rejected:length',
    )
  })

  it('a token without a kid is accepted only if exactly one key is possible [S06]', async () => {
    const token = await signer.token({}, { kid: undefined })
    const verify = (keys: JsonWebKey[]) =>
      outcome(() => createTokenVerifier({ issuers: [issuerOf(keys)], now }).verify(token))
    const rs256 = await createSigner('RS256')
    const other = { ...attacker.publicJwk, kid: 'other' }
    expect(await verify([signer.publicJwk])).toBe('ok')
    expect(await verify([signer.publicJwk, rs256.publicJwk])).toBe('ok')
    expect(await verify([signer.publicJwk, other])).toBe('token_rejected:kid_missing')
    expect(await verify([rs256.publicJwk])).toBe('token_rejected:kid_missing')
  })

  it('any crit is refused [S09]', async () => {
    for (const crit of [['x'], [], ['exp'], ['b64'], ['alg'], 'x', null, 1, {}]) {
      const token = await signer.token({}, { crit, x: 1 })
      expect(await check(token), JSON.stringify(crit)).toBe('token_rejected:crit')
    }
  })

  it('unencoded payloads are refused, with crit and without [S10]', async () => {
    expect(await check(await signer.token({}, { b64: false, crit: ['b64'] }))).toBe(
      'token_rejected:crit',
    )
    for (const b64 of [false, true, null]) {
      expect(await check(await signer.token({}, { b64 }))).toBe('token_rejected:b64')
    }
  })

  it('exactly the configured typ is accepted, in any case, with application/ or without [S11]', async () => {
    for (const typ of ['at+jwt', 'AT+JWT', 'application/at+jwt', 'Application/AT+jwt']) {
      expect(await check(await signer.token({}, { typ })), typ).toBe('ok')
    }
    for (const typ of [
      'JWT',
      'jwt',
      'id+jwt',
      'rt+jwt',
      'logout+jwt',
      'dpop+jwt',
      'origin-assertion+jwt',
      '',
      ' at+jwt',
      'at+jwt ',
      'x/at+jwt',
      'application/application/at+jwt',
      'at',
      undefined,
      null,
      1,
      ['at+jwt'],
      {},
    ]) {
      expect(await check(await signer.token({}, { typ })), JSON.stringify(typ)).toBe(
        'token_rejected:typ',
      )
    }
    expect(await check(await signer.token({}, { typ: 'JWT' }), { typ: 'JWT' })).toBe('ok')
    expect(await check(await signer.token(), { typ: 'JWT' })).toBe('token_rejected:typ')
  })

  it('a header with a duplicate name is refused [S18]', async () => {
    const payload = JSON.stringify(goodClaims)
    for (const header of [
      '{"alg":"ES256","alg":"none","kid":"ES256","typ":"at+jwt"}',
      '{"alg":"none","\\u0061lg":"ES256","kid":"ES256","typ":"at+jwt"}',
      '{"alg":"ES256","kid":"ES256","kid":"ES256","typ":"at+jwt"}',
    ]) {
      expect(await check(await signer.signRaw(header, payload))).toBe('token_rejected:header_json')
    }
  })

  it('encrypted and compressed tokens are refused before anything is decrypted [S22]', async () => {
    const jwe = (header: object) => `${encode(header)}.${'QUFB.'.repeat(3)}QUFB`
    for (const header of [
      { alg: 'dir', enc: 'A128GCM', zip: 'DEF' },
      { alg: 'PBES2-HS256+A128KW', enc: 'A128GCM', p2c: 2 ** 31, p2s: 'AAAA' },
    ]) {
      expect(await check(jwe(header))).toBe('token_rejected:segments')
      expect(await check(await signer.token({}, header))).toBe('token_rejected:alg')
    }
  })
})
