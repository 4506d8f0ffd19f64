import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import { expect, test } from 'vitest'
import { thumbprintOf } from '../../../src/crypto/thumbprint.ts'

test.each(['ES256', 'ES384', 'RS256', 'EdDSA'])('the thumbprint of a key for %s', async (alg) => {
  const { publicKey } = await generateKeyPair(alg, { extractable: true })
  const { kty = '', ...members } = await exportJWK(publicKey)
  // Neither the order of the members nor those of other types count.
  const others = { crv: 'P-256', x: 'AA', y: 'AA', n: 'AA', e: 'AQAB', k: 'AA', kid: 'a', alg }
  expect(await thumbprintOf({ ...others, ...members, kty })).toBe(
    await calculateJwkThumbprint({ kty, ...members }),
  )
})

test.each(['constructor', 'oct', ''])('a key of type "%s" has no thumbprint', async (kty) => {
  await expect(thumbprintOf({ kty, crv: 'P-256', x: 'AA', k: 'AA' } as never)).rejects.toThrow(
    'kty',
  )
})
