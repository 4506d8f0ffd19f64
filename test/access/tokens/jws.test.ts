import { describe, expect, it } from 'vitest'
import { readHeader, verifySignature } from '../../../src/access/tokens/jws.ts'
import { importKeys, type VerificationKey } from '../../../src/access/tokens/key-ring.ts'
import { Denied } from '../../../src/errors.ts'
import type { Algorithm } from '../../../src/validators/jwk.ts'
import { createSigner, encode, outcome } from './signer.ts'

const header = (members: object) => readHeader(`${encode(members)}.e30.AAAA`)

describe('the header of a compact JWS', () => {
  it('needs an algorithm, and may lack a kid and a type', async () => {
    expect(header({ alg: 'ES256' })).toEqual({ alg: 'ES256', kid: undefined, typ: undefined })
    expect(header({ alg: 'x', kid: 'k', typ: 'JWT' })).toEqual({ alg: 'x', kid: 'k', typ: 'JWT' })
    for (const alg of [undefined, null, 1, true, [], {}, ['ES256']])
      expect(await outcome(() => header({ alg }))).toBe('token_rejected:alg')
    expect(header({ alg: 'ES256', kid: null, typ: null })).toEqual(header({ alg: 'ES256' }))
    for (const typ of [1, true, [], {}, ['JWT']])
      expect(await outcome(() => header({ alg: 'ES256', typ }))).toBe('token_rejected:typ')
  })
})

describe('a signature', () => {
  const keyOf = async (jwk: JsonWebKey, algorithm: Algorithm): Promise<VerificationKey> => {
    const [key] = (await importKeys({ keys: [jwk] }, [algorithm]))?.ring ?? []
    if (key === undefined) throw new Error('the key set has no usable key')
    return key
  }

  it('is valid only with the algorithm name of its key, even if another name means the same', async () => {
    const signer = await createSigner('EdDSA')
    const { alg: _, ...jwk } = signer.publicJwk as JsonWebKey & { alg: string }
    const token = await signer.token()
    const verify = async (algorithm: Algorithm) =>
      verifySignature(token, await keyOf(jwk, algorithm))
    expect(await outcome(() => verify('EdDSA'))).toBe('ok')
    expect(await outcome(() => verify('Ed25519'))).toBe('token_rejected:signature')
  })

  it('with a faulty key is reported as an internal error, not as an invalid token', async () => {
    const signer = await createSigner('ES256')
    const key = await keyOf(signer.publicJwk, 'ES256')
    const usages: 'sign'[] = ['sign']
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256' }
    const { alg: _, ...jwk } = signer.privateJwk as JsonWebKey & { alg: string }
    const cryptoKey = await crypto.subtle.importKey('jwk', jwk, algorithm, false, usages)
    const attempt = verifySignature(await signer.token(), { ...key, cryptoKey })
    const error = await attempt.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(TypeError)
    expect(error).not.toBeInstanceOf(Denied)
  })
})
