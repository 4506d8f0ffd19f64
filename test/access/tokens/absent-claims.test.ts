/** Null and empty claims are absent, in every document of an issuer. */
import { describe, expect, test } from 'vitest'
import { createChecks } from './checks.ts'

const { verify, check } = await createChecks()

/** Claims of an access token that may be absent, with what the principal has without each. */
const OPTIONAL = {
  client_id: { client: undefined },
  tenant: { tenant: undefined },
  sid: { session: undefined },
  scope: { scopes: [] },
  scp: { scopes: [] },
  roles: { roles: [] },
  nbf: {},
  jti: { tokenId: undefined, tokenIdHash: undefined },
} as const

describe.each([null, ''])('a claim that is %j [S81]', (empty) => {
  test.each(Object.entries(OPTIONAL))('%s is absent', async (name, expected) => {
    expect(await verify({ [name]: empty })).toMatchObject(expected)
    expect(await verify({ [name]: empty })).toEqual(await verify({ [name]: undefined }))
  })

  test.each(['iss', 'sub', 'aud', 'exp', 'iat'])('%s is required', async (name) => {
    expect(await check({ [name]: empty })).toMatch(/^token_rejected:/)
  })

  test('leaves its place to the next claim with a value', async () => {
    expect(await verify({ client_id: empty, azp: 'web' })).toMatchObject({ client: 'web' })
    expect(await verify({ client_id: empty, azp: empty, cid: 'web' })).toMatchObject({
      client: 'web',
    })
    expect(await verify({ scope: empty, scp: 'a:read' })).toMatchObject({ scopes: ['a:read'] })
    const tenantClaim = [['org'], ['tenant']]
    expect(await verify({ org: empty, tenant: 't' }, { tenantClaim })).toMatchObject({
      tenant: 't',
    })
    expect(
      await verify({ uti: empty, jti: 'x' }, { tokenIdClaim: [['uti'], ['jti']] }),
    ).toMatchObject({
      tokenId: 'x',
    })
  })

  test('does not meet a rule, and meets the rule that there is none', async () => {
    expect(await check({ hd: empty }, { require: { hd: '*' } })).toBe(
      'token_rejected:required_claim',
    )
    expect(await check({ hd: empty }, { require: { hd: [null, 'a'] } })).toBe('ok')
    expect(await check({ client_id: empty }, { clients: ['*'] })).toBe('token_rejected:client_id')
  })

  test('counts as present where refuse names it', async () => {
    expect(await check({ act: empty }, { refuse: ['act'] })).toBe('token_rejected:refused_claim')
    expect(await check({ a: { b: empty } }, { refuse: ['a.b'] })).toBe(
      'token_rejected:refused_claim',
    )
    expect(await check({ act: undefined }, { refuse: ['act'] })).toBe('ok')
  })

  test('is no mark of another kind of token', async () => {
    const typ = ['JWT', 'at+jwt']
    expect(await check({ nonce: empty, at_hash: empty, events: empty }, { typ })).toBe('ok')
    expect(await check({ nonce: 'x' }, { typ })).toBe('token_rejected:refused_claim')
  })

  test('is skipped in a list', async () => {
    const claims = { roles: [empty, 'reader', empty], scope: ['a:read', empty] }
    expect(await verify(claims)).toMatchObject({ roles: ['reader'], scopes: ['a:read'] })
    expect(await verify({ groups: [empty, 'x'] }, { rolesClaim: 'groups' })).toMatchObject({
      roles: ['x'],
    })
    const config = { rolesClaim: 'groups', rolesMap: { staff: 'reader' } }
    // Roles that a map drops are none; empty ones are not roles at all.
    expect(await verify({ groups: [empty], scope: 'a:read' }, config)).toMatchObject({
      roles: [],
      scopeUse: 'narrow',
    })
  })
})

test('a binding is absent only if it is null: what is not understood is refused [S81]', async () => {
  expect(await verify({ cnf: null })).toMatchObject({ confirmation: undefined })
  for (const cnf of ['', {}, [], { jkt: null }, { jkt: '' }, { 'x5t#S256': 'x' }, false, 0])
    expect([cnf, await check({ cnf })]).toEqual([cnf, 'token_rejected:cnf'])
})

test('a claim of a wrong type is refused, not absent', async () => {
  for (const [name, value] of [
    ['client_id', 1],
    ['tenant', {}],
    ['sid', []],
    ['nbf', 'soon'],
    ['jti', false],
    ['roles', [{}]],
    ['roles', [0]],
    ['scope', { a: 1 }],
    ['scope', 'a\tb'],
  ] as const)
    expect([name, await check({ [name]: value })]).toEqual([name, `token_rejected:${name}`])
})

test.each([
  ['a:read  a:write', ['a:read', 'a:write']],
  ['a:read ', ['a:read']],
  [' a:read', ['a:read']],
  ['   ', []],
  ['', []],
  [['a:read', ''], ['a:read']],
] as const)('empty parts of the scope %j are ignored', async (scope, scopes) => {
  expect(await verify({ scope })).toMatchObject({ scopes })
  expect(await verify({ permissions: scope }, { scopeClaim: 'permissions' })).toMatchObject({
    scopes,
  })
})
