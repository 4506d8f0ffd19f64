/** Claims that are elsewhere than RFC 9068 says, and rules in the place of `typ` and `aud`. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { usualOrLong } from '../../harness/long.ts'
import { mistakes, remote, withIssuers } from '../../validators/environment.ts'
import { createChecks } from './checks.ts'
import { goodClaims } from './signer.ts'

const { verify, check: checkWith } = await createChecks()
const check = (claims: object, header: object = {}, config: object = {}) =>
  checkWith(claims, config, header)
const roles = async (claims: object, config: object) => (await verify(claims, config)).roles
const configMistakes = (config: object) => mistakes(withIssuers({ ...remote, ...config }))

describe('the path of a claim', () => {
  const nested = { realm_access: { roles: ['reader', 'writer'] } }

  it('is an array of names, a JSON Pointer, or text with dots', async () => {
    for (const rolesClaim of [
      ['realm_access', 'roles'],
      [['realm_access', 'roles']],
      '/realm_access/roles',
      'realm_access.roles',
    ])
      expect(await roles(nested, { rolesClaim })).toEqual(['reader', 'writer'])
  })

  it('with a colon or a slash is one name', async () => {
    for (const name of [
      'https://api.example.com/roles',
      'api.example.com/roles',
      'cognito:groups',
      'urn:zitadel:iam:org:project:roles',
    ])
      expect(await roles({ [name]: ['reader'] }, { rolesClaim: name })).toEqual(['reader'])
  })

  it('of an array or a JSON Pointer leads to names with dots and slashes', async () => {
    const claims = { 'kubernetes.io': { 'a/b~c': 'reader' } }
    expect(await roles(claims, { rolesClaim: ['kubernetes.io', 'a/b~c'] })).toEqual(['reader'])
    expect(await roles(claims, { rolesClaim: '/kubernetes.io/a~1b~0c' })).toEqual(['reader'])
  })

  it('with * leads to every member and every item', async () => {
    const claims = {
      resource_access: { a: { roles: ['one'] }, b: { roles: ['two'] } },
      groups: [{ name: 'three' }, { name: 'four' }, 'x', null],
    }
    expect(await roles(claims, { rolesClaim: 'resource_access.*.roles' })).toEqual(['one', 'two'])
    expect(await roles(claims, { rolesClaim: 'groups.*.name' })).toEqual(['three', 'four'])
  })

  it('with {audience} leads to the member of each audience', async () => {
    const claims = {
      aud: ['orders', 'account'],
      resource_access: { orders: { roles: ['reader'] }, account: { roles: ['admin'] } },
    }
    const config = { audience: 'orders', rolesClaim: 'resource_access.{audience}.roles' }
    expect(await roles(claims, config)).toEqual(['reader'])
  })

  it('of a missing member has no value', async () => {
    for (const claims of [
      {},
      { realm_access: null },
      { realm_access: 'roles' },
      { realm_access: [] },
    ])
      expect(await roles(claims, { rolesClaim: 'realm_access.roles' })).toEqual([])
    expect(await roles({}, { rolesClaim: 'constructor.name' })).toEqual([])
    expect(await roles({}, { rolesClaim: ['__proto__', 'x'] })).toEqual([])
  })

  it('has bounds', () => {
    const names = Array.from({ length: 9 }, () => 'a')
    for (const rolesClaim of [
      '',
      '.',
      'a..b',
      '/',
      [],
      names,
      names.join('.'),
      [[]],
      'a'.repeat(257),
    ])
      expect(configMistakes({ rolesClaim }), JSON.stringify(rolesClaim)).toHaveLength(1)
    const sources = Array.from({ length: 17 }, () => ['a'])
    expect(configMistakes({ rolesClaim: sources })).toHaveLength(1)
    expect(configMistakes({ rolesClaim: sources.slice(1) })).toEqual([])
  })
})

describe('roles', () => {
  it('are joined from several claims, each once', async () => {
    const claims = { roles: ['a', 'b'], groups: 'c', more: { roles: ['b', 'd'] } }
    const rolesClaim = [['roles'], 'groups', 'more.roles', ['absent']]
    expect(await roles(claims, { rolesClaim })).toEqual(['a', 'b', 'c', 'd'])
  })

  it('are the keys of an object, except false and null ones', async () => {
    const claims = { r: { admin: { org: 'x' }, reader: true, writer: false, other: null } }
    expect(await roles(claims, { rolesClaim: 'r' })).toEqual(['admin', 'reader'])
  })

  it('are flags that are named as the role', async () => {
    const claims = { admin: true, editor: false }
    const rolesClaim = [['admin'], ['editor'], ['absent']]
    expect(await roles(claims, { rolesClaim })).toEqual(['admin'])
  })

  it('are scopes if the claim is one of scopes', async () => {
    const rolesMap = { 'read:orders': 'reader' }
    const config = { rolesClaim: ['scope'], rolesMap }
    expect(await roles({ scope: 'openid read:orders' }, config)).toEqual(['reader'])
  })

  it('are whole numbers as text', async () => {
    expect(await roles({ r: [7, 'a'] }, { rolesClaim: 'r' })).toEqual(['7', 'a'])
    expect(await roles({ r: 7 }, { rolesClaim: 'r', rolesMap: { 7: 'reader' } })).toEqual([
      'reader',
    ])
  })

  it('are split at the configured separator, and at no other', async () => {
    const of = (value: unknown, rolesSeparator?: string) =>
      roles({ r: value }, { rolesClaim: 'r', rolesSeparator })
    expect(await of('admin, user,,')).toEqual(['admin, user,,'])
    expect(await of('admin, user,,', ',')).toEqual(['admin', 'user'])
    expect(await of(['admin,user', 'user', 'sales team'], ',')).toEqual([
      'admin',
      'user',
      'sales team',
    ])
    expect(await of('admin user', ' ')).toEqual(['admin', 'user'])
    expect(await of('', ',')).toEqual([])
    const mapped = { rolesClaim: 'r', rolesSeparator: ',', rolesMap: { admin: 'operator' } }
    expect(await roles({ r: 'admin,user' }, mapped)).toEqual(['operator'])
    for (const rolesSeparator of ['', ', ', 1])
      expect(configMistakes({ rolesSeparator }), `${rolesSeparator}`).toHaveLength(1)
  })

  it('in an object of the default claim refuse the token [S64]', async () => {
    for (const value of [{ reader: true }, true, 1, [{ name: 'reader' }]])
      expect(await check({ roles: value })).toBe('token_rejected:roles')
  })

  it('that are no names refuse the token, mapped or not', async () => {
    for (const value of [0.5, ['a', 0.5], [['a']], [{ name: 'a' }], 'a\r\nb']) {
      expect(await check({ r: value }, {}, { rolesClaim: 'r' })).toBe('token_rejected:roles')
    }
    const config = { rolesClaim: 'r', rolesMap: { a: 'b' } }
    expect(await check({ r: ['a', 0.5] }, {}, config)).toBe('token_rejected:roles')
  })
})

describe('a map of names', () => {
  const mapped = (names: readonly string[], rolesMap: object) =>
    roles({ roles: names }, { rolesMap })

  it('maps names, drops the others, and keeps them with "*": "*"', async () => {
    expect(await mapped(['Admins', 'Sales'], { Admins: 'admin' })).toEqual(['admin'])
    expect(await mapped(['Admins', 'Sales'], { Admins: ['admin', 'reader'] })).toEqual([
      'admin',
      'reader',
    ])
    expect(await mapped(['Admins', 'Sales'], { Admins: 'admin', '*': '*' })).toEqual([
      'admin',
      'Sales',
    ])
    expect(await mapped(['Admins'], { Admins: [] })).toEqual([])
    expect(await mapped(['Admins'], {})).toEqual([])
  })

  it('strips prefixes and suffixes, and matches patterns in their order', async () => {
    expect(await mapped(['app-admin', 'app-', 'other'], { 'app-*': '*' })).toEqual(['admin'])
    expect(await mapped(['org:admin:eu'], { 'org:*:eu': 'eu-*' })).toEqual(['eu-admin'])
    expect(await mapped(['a-readers'], { '*-readers': 'reader', '*': 'other' })).toEqual(['reader'])
    expect(await mapped(['a-readers'], { '*': 'other', '*-readers': 'reader' })).toEqual(['other'])
    expect(await mapped(['aba'], { 'ab*ba': 'x', '*': 'y' })).toEqual(['y'])
    expect(await mapped(['x$&$1'], { 'x*': 'r-*' })).toEqual(['r-$&$1'])
  })

  it('treats names of prototypes as other names', async () => {
    expect(await mapped(['constructor', '__proto__', 'toString'], { a: 'b' })).toEqual([])
  })

  it('has bounds, and patterns with at most one *', () => {
    const entries = Array.from({ length: 501 }, (_, n) => [`${n}`, 'a'] as const)
    expect(configMistakes({ rolesMap: Object.fromEntries(entries) })).toEqual([
      'ISSUERS[0].rolesMap: must have at most 500 entries',
    ])
    expect(configMistakes({ rolesMap: Object.fromEntries(entries.slice(1)) })).toEqual([])
    for (const rolesMap of [
      { '**': 'a' },
      { '*': '**' },
      { '': 'a' },
      { a: '' },
      { a: 1 },
      { a: 'b*' },
      { a: Array.from({ length: 21 }, () => 'a') },
    ])
      expect(configMistakes({ rolesMap }), JSON.stringify(rolesMap)).toHaveLength(1)
  })
})

describe('other claims', () => {
  it('scopes are joined from texts and lists, and mapped', async () => {
    const scopeClaim = [['scp'], ['permissions'], ['scope']]
    const claims = { scp: ['a', 'b'], permissions: ['c'], scope: 'b read:orders' }
    expect((await verify(claims, { scopeClaim })).scopes).toEqual(['a', 'b', 'c', 'read:orders'])
    const scopesMap = { 'read:*': '*:read' }
    expect((await verify(claims, { scopeClaim, scopesMap })).scopes).toEqual(['orders:read'])
  })

  it('client, tenant, session and subject are the first value that a claim has', async () => {
    const config = {
      clientClaim: [['cid'], ['app', 'id']],
      tenantClaim: 'o.id',
      sessionClaim: [['session_id'], ['sid']],
      subjectClaim: [['uid'], ['sub']],
    }
    const claims = { app: { id: 'web' }, o: { id: 'acme' }, sid: 's', uid: '', sub: 'alice' }
    expect(await verify(claims, config)).toMatchObject({
      client: 'web',
      tenant: 'acme',
      session: 's',
      subject: 'alice',
    })
    expect(await verify({ ...claims, uid: 42, cid: null }, config)).toMatchObject({
      subject: '42',
      client: 'web',
    })
    expect(await check({ ...claims, uid: 1.5 }, {}, config)).toBe('token_rejected:sub')
    expect(await check({ sub: undefined }, {}, config)).toBe('token_rejected:sub')
  })

  it('the token id is in jti, or in the first configured claim that has one', async () => {
    expect((await verify({ jti: 'a', uti: 'b' })).tokenId).toBe('a')
    const config = { tokenIdClaim: [['jti'], ['uti']] }
    expect((await verify({ jti: undefined, uti: 'b' }, config)).tokenId).toBe('b')
    expect((await verify({ jti: 'a', uti: 'b' }, config)).tokenId).toBe('a')
    expect((await verify({ jti: undefined }, config)).tokenId).toBeUndefined()
    expect(await check({ jti: undefined, uti: ['b'] }, {}, config)).toBe('token_rejected:jti')
  })

  it('the client is in client_id, azp, cid or appid, in this order', async () => {
    const client = async (claims: object) => (await verify(claims)).client
    expect(await client({ appid: 'd' })).toBe('d')
    expect(await client({ appid: 'd', cid: 'c' })).toBe('c')
    expect(await client({ appid: 'd', cid: 'c', azp: 'b' })).toBe('b')
    expect(await client({ appid: 'd', cid: 'c', azp: 'b', client_id: 'a' })).toBe('a')
  })
})

describe('typ', () => {
  it('is one of a list, or absent if the list has none', async () => {
    const require = { token_use: 'access' }
    const claims = { token_use: 'access' }
    const of = (typ: unknown, header: object) => check(claims, header, { typ, require })
    expect(await of(['JWT', 'at+jwt'], { typ: 'application/at+JWT' })).toBe('ok')
    expect(await of(['JWT', 'at+jwt'], { typ: 'jwt' })).toBe('ok')
    expect(await of(['JWT', 'at+jwt'], { typ: 'dpop+jwt' })).toBe('token_rejected:typ')
    expect(await of(['JWT', 'at+jwt'], { typ: undefined })).toBe('token_rejected:typ')
    expect(await of(['JWT', 'none'], { typ: undefined })).toBe('ok')
    expect(await of('none', { typ: undefined })).toBe('ok')
    expect(await of('none', { typ: 'JWT' })).toBe('token_rejected:typ')
  })

  it('may be absent only if a rule on another claim accepts access tokens alone', () => {
    const refusal =
      'ISSUERS[0].typ: accepts tokens without typ, so the entry requires a rule in require, such as { "token_use": "access" }, or clients'
    for (const typ of ['none', ['JWT', 'none']]) {
      expect(configMistakes({ typ })).toEqual([refusal])
      expect(configMistakes({ typ, require: {} })).toEqual([refusal])
      expect(configMistakes({ typ, require: { a: null } })).toEqual([refusal])
      expect(configMistakes({ typ, require: { a: ['x', null] } })).toEqual([refusal])
      expect(configMistakes({ typ, require: { token_use: 'access' } })).toEqual([])
      expect(configMistakes({ typ, clients: ['web'] })).toEqual([])
    }
  })
})

describe('the audience', () => {
  const config = { audienceClaim: 'client_id', audience: 'app' }

  it('may be in another claim', async () => {
    expect(await check({ aud: undefined, client_id: 'app' }, {}, config)).toBe('ok')
    expect(await check({ aud: undefined, client_id: 'other' }, {}, config)).toBe(
      'token_rejected:aud',
    )
    expect(await check({ aud: undefined }, {}, config)).toBe('token_rejected:aud')
  })

  it('may be in the first of several claims that has a value', async () => {
    const first = { audienceClaim: [['client_id'], ['azp']], audience: 'app' }
    const of = (claims: object) => check({ aud: undefined, ...claims }, {}, first)
    expect(await of({ client_id: 'app' })).toBe('ok')
    expect(await of({ azp: 'app' })).toBe('ok')
    expect(await of({ client_id: 'other', azp: 'app' })).toBe('token_rejected:aud')
    expect(await of({})).toBe('token_rejected:aud')
  })

  it('of a token that has aud must be in aud too', async () => {
    expect(await check({ aud: 'other', client_id: 'app' }, {}, config)).toBe('token_rejected:aud')
    expect(await check({ aud: ['app'], client_id: 'app' }, {}, config)).toBe('ok')
    expect(await check({ aud: [null], client_id: 'app' }, {}, config)).toBe('token_rejected:aud')
  })

  it('may be the issuer only together with another rule', () => {
    const audienceClaim = 'iss'
    expect(configMistakes({ audienceClaim })).toEqual([
      'ISSUERS[0].audienceClaim: accepts every token of the issuer, so it requires a rule in require, such as { "token_use": "access" }, or clients',
    ])
    expect(configMistakes({ audienceClaim, require: { drn: 'DS' } })).toEqual([])
    expect(configMistakes({ audienceClaim: [['client_id'], ['iss']] })).toHaveLength(1)
  })
})

describe('rules', () => {
  const of = (require: object, claims: object) => check(claims, {}, { require })

  it('require a text, a pattern, a number or a boolean', async () => {
    expect(await of({ token_use: 'access' }, { token_use: 'access' })).toBe('ok')
    for (const token_use of ['id', undefined, null, true, ['id'], {}])
      expect(await of({ token_use: 'access' }, { token_use })).toBe('token_rejected:required_claim')
    expect(await of({ jti: 'AT.*' }, { jti: 'AT.1' })).toBe('ok')
    expect(await of({ jti: 'AT.*' }, { jti: 'ID.1' })).toBe('token_rejected:required_claim')
    expect(await of({ v: 2, ok: true }, { v: 2, ok: true })).toBe('ok')
    expect(await of({ v: 2 }, { v: '2' })).toBe('token_rejected:required_claim')
    expect(await of({ ok: true }, { ok: 'true' })).toBe('token_rejected:required_claim')
  })

  it('require one of a list, any value, one item of a list, or no value', async () => {
    expect(await of({ typ: ['Bearer', 'DPoP'] }, { typ: 'DPoP' })).toBe('ok')
    expect(await of({ x: '*' }, { x: { y: 1 } })).toBe('ok')
    for (const x of [undefined, null, ''])
      expect(await of({ x: '*' }, { x })).toBe('token_rejected:required_claim')
    expect(await of({ groups: 'staff' }, { groups: ['a', 'staff'] })).toBe('ok')
    expect(await of({ groups: 'staff' }, { groups: ['a'] })).toBe('token_rejected:required_claim')
    expect(await of({ sts: ['active', null] }, {})).toBe('ok')
    expect(await of({ sts: ['active', null] }, { sts: 'pending' })).toBe(
      'token_rejected:required_claim',
    )
    expect(await of({ x: null }, { x: 1 })).toBe('token_rejected:required_claim')
  })

  it('all apply, at nested claims too', async () => {
    const require = { '/kubernetes.io/namespace': 'shop', sub: 'system:serviceaccount:*' }
    const claims = { sub: 'system:serviceaccount:shop:a', 'kubernetes.io': { namespace: 'shop' } }
    expect(await of(require, claims)).toBe('ok')
    expect(await of(require, { ...claims, sub: 'alice' })).toBe('token_rejected:required_claim')
    expect(await of(require, { ...claims, 'kubernetes.io': {} })).toBe(
      'token_rejected:required_claim',
    )
  })

  it('name the clients whose tokens are accepted', async () => {
    const of = (claims: object) => check(claims, {}, { clients: ['web', 'mobile-*'] })
    expect(await of({ azp: 'web' })).toBe('ok')
    expect(await of({ client_id: 'mobile-ios' })).toBe('ok')
    expect(await of({ azp: 'other' })).toBe('token_rejected:client_id')
    expect(await of({ client_id: 'other', azp: 'web' })).toBe('token_rejected:client_id')
    expect(await of({})).toBe('token_rejected:client_id')
  })

  it('are checked after the signature', async () => {
    const unknown = { kid: 'unknown' }
    expect(await check({}, unknown, { clients: ['web'] })).toBe('token_rejected:kid_unknown')
  })

  it('must be names of claims', () => {
    expect(configMistakes({ require: { 'a..b': 'x' } })).toEqual([
      'ISSUERS[0].require["a..b"]: must be the name of a claim',
    ])
    for (const require of [{ a: [] }, { a: {} }, { a: '**' }, { a: '' }])
      expect(configMistakes({ require }), JSON.stringify(require)).toHaveLength(1)
  })
})

describe('ID tokens', () => {
  const marks = { nonce: 'n', at_hash: 'h', c_hash: 'h', s_hash: 'h', events: {} }

  it('are refused with every typ but at+jwt, unless they are named', async () => {
    for (const [claim, value] of Object.entries(marks)) {
      const of = (config: object) => check({ [claim]: value }, { typ: 'JWT' }, config)
      expect(await of({ typ: 'JWT' }), claim).toBe('token_rejected:refused_claim')
      expect(await of({ typ: ['JWT', 'at+jwt'] }), claim).toBe('token_rejected:refused_claim')
      expect(await of({ typ: 'JWT', refuse: [] }), claim).toBe('ok')
      const isLogout = claim === 'events'
      expect(await of({ typ: 'JWT', tokenUse: 'id' }), claim).toBe(
        isLogout ? 'token_rejected:refused_claim' : 'ok',
      )
    }
    expect(await check({ nonce: 'n' })).toBe('ok')
  })

  it('are not recognized by a claim without a value', async () => {
    for (const nonce of ['', null])
      expect(await check({ nonce }, { typ: 'JWT' }, { typ: 'JWT' })).toBe('ok')
  })

  it('are refused by the kind that they state, and so are refresh and logout tokens', async () => {
    const kinds = ['ID', 'id_token', 'Refresh', 'refresh', 'refresh_token', 'Offline', 'logout']
    for (const claim of ['typ', 'type', 'token_type', 'token_use']) {
      for (const kind of kinds)
        expect(await check({ [claim]: kind }), `${claim} ${kind}`).toBe(
          'token_rejected:refused_claim',
        )
      for (const kind of ['Bearer', 'access', 'access_token', 'DPoP', 'app', 'idea', '', 1, null])
        expect(await check({ [claim]: kind }), `${claim} ${kind}`).toBe('ok')
      const id = { tokenUse: 'id' }
      expect(await check({ [claim]: 'id' }, {}, id)).toBe('ok')
      expect(await check({ [claim]: 'refresh' }, {}, id)).toBe('token_rejected:refused_claim')
      const require = { [claim]: 'Offline' }
      expect(await check({ [claim]: 'Offline' }, {}, { require })).toBe('ok')
    }
  })

  it('are refused by other claims that the configuration names', async () => {
    const config = { refuse: ['email', 'profile.name'] }
    expect(await check({ email: 'a@b' }, {}, config)).toBe('token_rejected:refused_claim')
    expect(await check({ profile: { name: 'a' } }, {}, config)).toBe('token_rejected:refused_claim')
    expect(await check({ email: null }, {}, config)).toBe('token_rejected:refused_claim')
    expect(await check({ profile: {} }, {}, config)).toBe('ok')
  })
})

describe('any claim', () => {
  const configs: readonly object[] = [
    {},
    {
      rolesClaim: [['roles'], ['*', 'roles'], 'groups.*.name', ['https://a.test/roles']],
      rolesMap: { 'app-*': '*', '*': ['a', '*'] },
      rolesSeparator: ',',
      subjectClaim: [['uid'], ['sub']],
      clientClaim: [['app', 'id'], ['azp']],
      tenantClaim: [['org', 'id'], ['org']],
      sessionClaim: [['session', 'id'], ['sid']],
      tokenIdClaim: [['jti'], ['uti']],
      scopeClaim: [['scp'], ['permissions'], ['scope', '*']],
      scopesMap: { '*': '*' },
      audienceClaim: [['client_id'], ['aud']],
      clients: ['*'],
      require: { sub: '*', 'status.*': ['active', null] },
      refuse: ['nonce', 'events.*'],
    },
    {
      rolesClaim: 'roles.*.*.*',
      scopeClaim: ['permissions', '*', '*'],
      scopes: 'grant',
      typ: ['at+jwt', 'none'],
      clients: ['*'],
    },
  ]
  const names = fc.constantFrom(
    ...['roles', 'groups', 'scope', 'scp', 'permissions', 'org', 'app', 'session', 'status', 'uid'],
    ...['sub', 'aud', 'azp', 'client_id', 'jti', 'uti', 'sid', 'tenant', 'typ', 'nonce', 'events'],
    ...['https://a.test/roles', '__proto__', 'constructor'],
  )
  const claims = fc.dictionary(names, fc.jsonValue({ maxDepth: 4 }), { maxKeys: 8 })

  it('is read or refused: no value throws, and no value is multiplied', async () => {
    await fc.assert(
      fc.asyncProperty(claims, fc.constantFrom(...configs), async (changes, config) => {
        const result = await check(changes, {}, config)
        expect(result).toMatch(/^(ok|token_rejected:\w+)$/)
        if (result !== 'ok') return
        const { subject, roles, scopes } = await verify(changes, config)
        expect(subject.length).toBeLessThanOrEqual(255)
        // A map with one result and one `*` at most doubles what the token contains.
        const bound = 2 * JSON.stringify({ ...goodClaims, ...changes }).length
        expect(roles.length + scopes.length).toBeLessThanOrEqual(bound)
        for (const name of [...roles, ...scopes]) expect(name).toMatch(/^[^\p{Cc}]{1,256}$/u)
      }),
      { seed: 20_261_128, numRuns: usualOrLong(300, 1_000) },
    )
  })
})
