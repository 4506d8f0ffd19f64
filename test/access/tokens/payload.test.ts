import { describe, expect, it } from 'vitest'
import { createChecks } from './checks.ts'
import { goodClaims, NOW_SECONDS } from './signer.ts'

const { verify, check, checkText } = await createChecks()

describe('the payload', () => {
  it('duplicate claims are refused [S18]', async () => {
    const duplicated = (extra: string) =>
      checkText(`${JSON.stringify(goodClaims).slice(0, -1)},${extra}}`)
    expect(await duplicated('"x":1')).toBe('ok')
    for (const extra of [
      '"sub":"admin"',
      '"\\u0073ub":"admin"',
      '"iss":"https://idp.test/"',
      '"x":1,"x":1',
      '"x":{"y":1,"y":2}',
    ]) {
      expect(await duplicated(extra), extra).toBe('token_rejected:payload_json')
    }
  })

  it('deep nesting is refused, for any length of the payload [S21]', async () => {
    expect(await check({ x: JSON.parse('['.repeat(15) + ']'.repeat(15)) })).toBe('ok')
    expect(await check({ x: JSON.parse('['.repeat(16) + ']'.repeat(16)) })).toBe(
      'token_rejected:payload_json',
    )
    // The size limit would apply first, so the payload goes directly to the verifier's parser.
    expect(await checkText('['.repeat(5_000))).toBe('token_rejected:payload_json')
  })

  it('a payload that is not an object is refused [S24]', async () => {
    for (const payload of ['"x"', '[]', '1', 'null', 'true', 'x', '{', '{}x', '\ufeff{}']) {
      expect(await checkText(payload), payload).toBe('token_rejected:payload_json')
    }
    expect(await checkText('')).toBe('token_rejected:segments')
    expect(await checkText(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toBe(
      'token_rejected:payload_encoding',
    )
    expect(await checkText('{}')).toBe('token_rejected:iss')
  })

  it('names of prototypes are ordinary claims and ordinary roles [S25]', async () => {
    const text = JSON.stringify(goodClaims).slice(0, -1)
    expect(
      await checkText(
        `${text},"__proto__":{"roles":["admin"]},"constructor":{"prototype":{"role":"admin"}},"toString":1}`,
      ),
    ).toBe('ok')
    expect(({} as { role?: unknown }).role).toBeUndefined()
    expect((await verify({ roles: ['constructor', '__proto__'] })).roles).toEqual([
      'constructor',
      '__proto__',
    ])
    expect(
      (await verify({}, { rolesClaim: 'constructor', tenantClaim: 'toString' })).roles,
    ).toEqual([])
    const inherited = `{"__proto__":${JSON.stringify(goodClaims)}}`
    expect(await checkText(inherited)).toBe('token_rejected:iss')
  })

  it('a token with an unsupported confirmation method is refused', async () => {
    for (const cnf of [{ jkt: 'x' }, { 'x5t#S256': 'x' }, {}])
      expect(await check({ cnf })).toBe('token_rejected:cnf')
  })

  it('the identity of a token is its issuer and jti, and never collides with another [S32]', async () => {
    const hash = async (claims: object) => (await verify(claims)).tokenIdHash
    expect(await hash({})).toBe(await hash({ sub: 'bob', exp: NOW_SECONDS + 5 }))
    expect(await hash({ jti: undefined })).toBeUndefined()
    const hashes = await Promise.all(
      ['a', 'a:b', '*', 'a*', '["', '","', '\u0000', 'a\nb'].map((jti) => hash({ jti })),
    )
    expect(new Set(hashes).size).toBe(hashes.length)
    for (const one of hashes) expect(one).toMatch(/^[\w-]{43}$/)
  })
})
