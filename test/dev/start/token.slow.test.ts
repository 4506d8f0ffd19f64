import { parseEnv } from 'node:util'
import { createLocalJWKSet, type JSONWebKeySet, type JWK, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Checkout, makeCheckout, type Outcome } from './checkout.ts'
import { ALL_CLAIMS, ALL_FLAGS, ALL_SECONDS } from './requested-claims.ts'

describe('npm run -s token', () => {
  let checkout: Checkout

  beforeAll(async () => {
    checkout = await makeCheckout()
  })

  afterAll(() => checkout.close())

  function token(...args: string[]): Promise<Outcome> {
    return checkout.run(['npm', 'run', '-s', 'token', '--', ...args]).ended
  }

  async function verified(...args: string[]) {
    const { code, stdout } = await token(...args)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    const vars = parseEnv(await checkout.file('.dev.vars'))
    const { keys } = JSON.parse(vars.SIGNING_KEYS ?? '') as JSONWebKeySet
    const publicKeys = keys.map(({ d, ...key }: JWK) => key)
    const publicUrl = vars.PUBLIC_URL ?? ''
    return jwtVerify(stdout.trim(), createLocalJWKSet({ keys: publicKeys }), {
      issuer: publicUrl,
      audience: publicUrl,
      typ: 'at+jwt',
      algorithms: ['ES256'],
    })
  }

  it('prints one access token (RFC 9068) with all requested claims', async () => {
    const { payload, protectedHeader } = await verified(...ALL_FLAGS)
    const { iat = 0, exp = 0, iss, aud, ...claims } = payload
    expect(claims).toEqual(ALL_CLAIMS)
    expect(exp - iat).toBe(ALL_SECONDS)
    expect(protectedHeader.kid).toEqual(expect.any(String))
  })

  it('omits claims that were not requested, and gives each token its own id', async () => {
    const one = (await verified('--sub', 'alice')).payload
    const other = (await verified('--sub', 'alice')).payload
    expect(Object.keys(one).sort()).toEqual(
      ['aud', 'client_id', 'exp', 'iat', 'iss', 'jti', 'roles', 'sub'].sort(),
    )
    expect((one.exp ?? 0) - (one.iat ?? 0)).toBe(3_600)
    expect(one.jti).not.toBe(other.jti)
  })

  it.each([
    [[], '--subject is missing'],
    [['--sub', ''], '--sub must not be empty'],
    [['--sub', 'a', '--ttl', '1w'], '--ttl must look like 90s, 15m, 1h or 2d'],
    [['--sub', 'a', '--ttl', '0s'], '--ttl must look like 90s, 15m, 1h or 2d'],
    [['--sub', 'a', '--admin'], "'--admin'"],
    [['--sub', 'a', 'b'], "'b'"],
  ])('refuses %j with status 2, and prints no token', async (args, message) => {
    const { code, stdout, stderr } = await token(...args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })
})
