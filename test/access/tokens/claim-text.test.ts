import { describe, expect, it } from 'vitest'
import { createChecks } from './checks.ts'

const { verify, check } = await createChecks()

describe('text in claims', () => {
  it('sub is required, printable, well-formed and of bounded length [S17]', async () => {
    for (const sub of [
      'a',
      'a'.repeat(255),
      'auth0|5f',
      'müller@example.test',
      '日本',
      'first last',
      '🔑',
      '__proto__',
    ]) {
      expect((await verify({ sub })).subject).toBe(sub)
    }
    for (const sub of [
      undefined,
      null,
      '',
      1,
      {},
      ['alice'],
      true,
      'a'.repeat(256),
      'a\u0000',
      'a\r\nX-Auth-Roles: admin',
      'a\tb',
      '\u007f',
      'a\u0085b',
      'a\u2028b',
      '\ud800',
      'a\udc00',
      ' alice',
      'alice ',
      '\u00a0alice',
    ]) {
      expect(await check({ sub }), JSON.stringify(sub)).toBe('token_rejected:sub')
    }
    expect(await check({ sub: 'a'.repeat(1_000_000) })).toBe('token_rejected:length')
  })

  it('every other text that may reach a header or a log has the same limits [S17]', async () => {
    for (const [claim, name] of [
      ['client_id', 'client_id'],
      ['azp', 'client_id'],
      ['tenant', 'tenant'],
      ['sid', 'sid'],
      ['roles', 'roles'],
    ]) {
      for (const value of [1, {}, 'a\r\nb', '\ud800', 'a'.repeat(257), ' a']) {
        expect(await check({ [`${claim}`]: value }), `${claim} ${JSON.stringify(value)}`).toBe(
          `token_rejected:${name}`,
        )
      }
    }
    for (const jti of [1, '\ud800', 'a'.repeat(257)])
      expect(await check({ jti })).toBe('token_rejected:jti')
    for (const scope of [1, {}, 'a"b', 'a\\b', 'a\tb', 'ä', ['a b'], [1]]) {
      expect(await check({ scope }), JSON.stringify(scope)).toBe('token_rejected:scope')
    }
    for (const roles of [[1], [['a']], { 0: 'a' }])
      expect(await check({ roles })).toBe('token_rejected:roles')
  })

  it('accepts scopes, roles and clients in the forms of the large providers', async () => {
    expect((await verify({ scope: '' })).scopes).toEqual([])
    expect((await verify({ scope: ['a', 'b'] })).scopes).toEqual(['a', 'b'])
    expect((await verify({ scp: 'a b' })).scopes).toEqual(['a', 'b'])
    expect((await verify({ scp: ['a', 'b'] })).scopes).toEqual(['a', 'b'])
    expect((await verify({ scope: 'a', scp: 'b' })).scopes).toEqual(['a'])
    expect((await verify({ azp: 'web' })).client).toBe('web')
    expect((await verify({ client_id: 'a', azp: 'b' })).client).toBe('a')
    expect((await verify({ roles: 'Domain Admins' })).roles).toEqual(['Domain Admins'])
    const named = { rolesClaim: 'https://x.test/roles', tenantClaim: 'org' }
    expect(
      await verify({ 'https://x.test/roles': ['r'], org: 'o', roles: ['no'], tenant: 'no' }, named),
    ).toMatchObject({ roles: ['r'], tenant: 'o' })
  })
})
