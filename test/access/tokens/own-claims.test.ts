import { describe, expect, it } from 'vitest'
import { tokenIdHash } from '../../../src/access/token-id.ts'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { createSigner, ISSUER, issuerOf, NOW_MS, outcome } from './signer.ts'

const GATEWAY = 'https://gateway.test'
const IDP = 'https://idp.example'
const signer = await createSigner('ES256')
const verifier = createTokenVerifier({
  issuers: [
    issuerOf([signer.publicJwk]),
    issuerOf([signer.publicJwk], { issuer: GATEWAY }),
    issuerOf([signer.publicJwk], { issuer: `${GATEWAY}/` }),
  ],
  ownIssuer: GATEWAY,
  now: () => NOW_MS,
})
const verify = async (claims: object) => verifier.verify(await signer.token(claims))
const check = (claims: object) => outcome(() => verify(claims))

describe('the issuer of a subject', () => {
  it('is sub_iss in a token of the gateway itself, which remains the issuer of the token', async () => {
    const principal = await verify({ iss: GATEWAY, sub_iss: IDP })
    expect(principal).toMatchObject({ issuer: IDP, tokenIssuer: GATEWAY, subject: 'alice' })
    // The token id belongs to the gateway, because it issued the token.
    expect(principal.tokenIdHash).toBe(await tokenIdHash(GATEWAY, 'token-1'))
    expect(await verify({ iss: GATEWAY })).toMatchObject({ issuer: GATEWAY, tokenIssuer: GATEWAY })
  })

  it('cannot be set by any other issuer [S12]', async () => {
    for (const iss of [ISSUER, `${GATEWAY}/`]) {
      for (const sub_iss of [IDP, GATEWAY, 7, null, ['x']])
        expect(await verify({ iss, sub_iss })).toMatchObject({ issuer: iss, tokenIssuer: iss })
    }
  })

  it('must be printable text in sub_iss, or the token is refused [S17]', async () => {
    for (const sub_iss of ['', 7, null, [IDP], { iss: IDP }, 'a\r\nb', ' x', 'x'.repeat(2_049)])
      expect(await check({ iss: GATEWAY, sub_iss }), String(sub_iss)).toBe('token_rejected:sub_iss')
  })

  it('cannot be set by any issuer if the verifier has no own issuer', async () => {
    const plain = createTokenVerifier({
      issuers: [issuerOf([signer.publicJwk], { issuer: GATEWAY })],
      now: () => NOW_MS,
    })
    const token = await signer.token({ iss: GATEWAY, sub_iss: IDP })
    expect(await plain.verify(token)).toMatchObject({ issuer: GATEWAY })
  })
})

describe('the key that a token is bound to', () => {
  const jkt = `${'a'.repeat(42)}A`

  it('is the thumbprint of cnf', async () => {
    expect((await verify({ cnf: { jkt } })).confirmation).toBe(jkt)
    expect((await verify({})).confirmation).toBeUndefined()
  })

  it('is refused in any other form, or with several forms', async () => {
    for (const cnf of [
      {},
      [],
      jkt,
      { jkt: 7 },
      { jkt: '' },
      { jkt: jkt.slice(1) },
      { jkt: `${jkt}a` },
      { jkt: `${'a'.repeat(42)}B` },
      { jkt: `${'a'.repeat(42)}=` },
      { jkt: `+${jkt.slice(1)}` },
      { jkt: [jkt] },
      { 'x5t#S256': jkt },
      { jkt, 'x5t#S256': jkt },
      { jkt, kid: 'x' },
      { jwk: signer.publicJwk },
    ])
      expect(await check({ cnf }), JSON.stringify(cnf)).toBe('token_rejected:cnf')
  })
})
