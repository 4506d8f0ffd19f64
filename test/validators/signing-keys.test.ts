import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/features/environment.ts'
import { eddsa, es256, mistakes, remote, rs256, secret, withKeys } from './environment.ts'

describe('SIGNING_KEYS', () => {
  const own = (env: object) =>
    parseConfig(env).issuers.find(({ issuer }) => issuer === 'https://gateway.test')

  it('make the gateway an issuer with the public keys alone', () => {
    const env = {
      ...withKeys(es256.privateJwk, rs256.privateJwk, eddsa.privateJwk),
      ISSUERS: JSON.stringify([remote]),
    }
    expect(parseConfig(env).issuers).toHaveLength(2)
    expect(own(env)).toMatchObject({
      audience: 'https://gateway.test',
      algorithms: ['ES256', 'RS256', 'EdDSA'],
      typ: 'at+jwt',
    })
    for (const { privateJwk } of [es256, rs256, eddsa])
      expect(JSON.stringify(own(env))).not.toContain(privateJwk.d)
  })

  it('an ISSUERS entry for the gateway itself replaces the derived entry', () => {
    const explicit = { ...remote, issuer: 'https://gateway.test' }
    expect(
      own({ ...withKeys(es256.privateJwk), ISSUERS: JSON.stringify([explicit]) }),
    ).toMatchObject(explicit)
  })

  it('a missing alg follows from the key', () => {
    const bare = [es256, rs256, eddsa].map(({ privateJwk: { alg: _, ...jwk } }) => jwk)
    expect(parseConfig(withKeys(...bare)).signingKeys?.keys.map(({ alg }) => alg)).toEqual([
      'ES256',
      'RS256',
      'EdDSA',
    ])
  })

  it('must be private, valid, and have distinct kids [S47]', () => {
    const of = (...keys: unknown[]) => mistakes(withKeys(...keys))
    expect(of(es256.publicJwk)).toEqual(['SIGNING_KEYS.keys[0].d: is missing'])
    expect(of({ ...es256.privateJwk, kid: undefined })).toEqual([
      'SIGNING_KEYS.keys[0].kid: is missing',
    ])
    expect(of(es256.privateJwk, { ...eddsa.privateJwk, kid: 'ES256' })).toEqual([
      'SIGNING_KEYS.keys: must have a unique kid for each key',
    ])
    expect(of()).toEqual(['SIGNING_KEYS.keys: must not be empty'])
    expect(of({ kty: 'oct', k: secret(), kid: 'x' })).toEqual([
      'SIGNING_KEYS.keys[0].kty: must be EC, OKP or RSA',
    ])
    expect(of({ ...rs256.privateJwk, alg: 'PS256' })).toEqual([
      'SIGNING_KEYS.keys[0].alg: must be RS256',
    ])
    expect(of({ ...es256.privateJwk, use: 'enc' })).toEqual([
      "SIGNING_KEYS.keys[0].use: must be 'sig'",
    ])
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({
      format: 'jwk',
    })
    expect(of({ ...weak, kid: 'weak' })).toEqual([
      'SIGNING_KEYS.keys[0]: is malformed or too weak (n_size)',
    ])
  })

  it('may have validity periods, but not all may have expired [S46]', () => {
    const second = Math.floor(Date.now() / 1000)
    const of = (...times: object[]) =>
      mistakes(withKeys(...times.map((time, i) => ({ ...es256.privateJwk, kid: `${i}`, ...time }))))
    expect(of({ nbf: second + 60, exp: second + 120 })).toEqual([])
    expect(of({ exp: second - 1 }, {})).toEqual([])
    expect(of({ exp: second - 1 }, { nbf: 0, exp: 1 })).toEqual([
      'SIGNING_KEYS.keys: must contain a key that has not expired',
    ])
    expect(of({ nbf: second + 60, exp: second + 60 })).toEqual([
      'SIGNING_KEYS.keys[0]: must have an exp after its nbf',
    ])
    for (const odd of ['1', 1.5, -1, null])
      expect(of({ exp: odd })).toEqual([expect.stringMatching(/^SIGNING_KEYS\.keys\[0\]\.exp: /)])
  })

  it('keys printed in a standard are refused [S47]', () => {
    // RFC 8037 appendix A.1.
    const printed = {
      kty: 'OKP',
      crv: 'Ed25519',
      kid: 'x',
      d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A',
      x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
    }
    expect(mistakes(withKeys(printed))).toEqual([
      'SIGNING_KEYS.keys[0]: is published in a standard; generate another key',
    ])
  })
})
