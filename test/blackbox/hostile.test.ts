/** Every attack on every route of the shipped policy. A new route is attacked automatically. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { base64url, SignJWT } from 'jose'
import { beforeEach, describe, expect, inject, test } from 'vitest'
import policy from '#policy'
import { fromAddress, newAddress } from '../harness/address.ts'
import { forget, recordsOf } from '../harness/control.ts'
import { AUDIENCE, createKey, ISSUER, mint, REMOTE_ISSUER } from '../harness/issuer.ts'
import { everyOrAll, IS_LONG } from '../harness/long.ts'
import { sendRaw } from '../harness/raw.ts'
import { keysOf } from '../harness/stack-redis.ts'

const stack = inject('stack')
const [here] = stack.gateways

/** A sample has one of so many texts of JSONTestSuite. */
const SAMPLED = 7
/** Texts of JSONTestSuite about depth, bytes, encodings and duplicates: runtimes differ there. */
const ODD =
  /structure_(?:100000|open_array_object|500|no_data|UTF)|single_space|BOM|BE_no|duplicated/

/** A path and a body that the route accepts. */
const SAMPLE_ID = '0190a4b0-5c1e-7f3a-8b2d-1c2d3e4f5a6b'
const bodies: Record<string, string> = {
  'POST /orders': '{"item":"nails","quantity":1}',
  'POST /reports': '{"from":"2026-01-01","to":"2026-01-31"}',
}
const routes = policy.routes.map(({ method, path, permission, relation }) => ({
  name: `${method} ${path}`,
  method,
  path: path.replace(':id', SAMPLE_ID),
  guarded: permission !== undefined,
  /** True if the route also requires a relation, which no caller has here. */
  demandsRelation: relation !== undefined,
  body: bodies[`${method} ${path}`],
}))
type Route = (typeof routes)[number]
/** What a route is to the stages and the proxy: its method, whether it has a body, and whether it requires a relation. */
const kindOf = ({ method, body, demandsRelation }: Route) =>
  [method, body !== undefined, demandsRelation].join()
/**
 * All guarded routes. The stages that refuse are the same code on each runtime: on Node each run attacks one route of
 * each kind.
 */
const guarded = routes
  .filter((route) => route.guarded)
  .filter(
    (route, at, all) =>
      IS_LONG ||
      stack.runtime === 'workerd' ||
      all.findIndex((other) => kindOf(other) === kindOf(route)) === at,
  )

function send(route: Route, headers: Record<string, string>, path = route.path): Promise<Response> {
  return fetch(here + path, {
    method: route.method,
    headers: {
      ...(route.body && { 'content-type': 'application/json' }),
      ...fromAddress(newAddress()),
      ...headers,
    },
    ...(route.body && { body: route.body }),
  })
}

const admin = (claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}) =>
  mint(stack.inlineKey, { claims: { roles: ['admin'], ...claims }, header })

const encode = (value: unknown) => base64url.encode(JSON.stringify(value))
const now = () => Math.floor(Date.now() / 1000)
const goodClaims = () => ({
  iss: ISSUER,
  aud: AUDIENCE,
  sub: 'eve',
  iat: now(),
  exp: now() + 600,
  jti: 'x',
  roles: ['admin'],
})

/** Encodes the same 64 bytes of a signature in base64url with other spare bits. */
function withSpareBits(token: string, spare: number): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  // 86 characters hold 516 bits. The last four are not part of the signature, and are 0.
  return token.slice(0, -1) + alphabet[alphabet.indexOf(token.at(-1) ?? '') + spare]
}

/** Returns tokens as close to valid as possible without the issuer's key. */
async function forgeries(): Promise<[string, string][]> {
  const good = await admin()
  const [header = '', payload = '', signature = ''] = good.split('.')
  const own = await createKey(stack.inlineKey.kid)
  const publicPem = new TextEncoder().encode(JSON.stringify(stack.inlineKey.publicJwk))
  const hs256 = await new SignJWT(goodClaims())
    .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid: stack.inlineKey.kid })
    .sign(publicPem)
  const unsigned = (alg: unknown) => `${encode({ alg, typ: 'at+jwt' })}.${encode(goodClaims())}.`
  const changed = encode({ ...goodClaims(), sub: 'root' })
  return [
    ['alg none [S01]', unsigned('none')],
    ['alg None with a signature [S01]', `${unsigned('None')}${signature}`],
    ['alg nOnE [S01]', unsigned('nOnE')],
    ['alg null [S01]', `${unsigned(null)}${signature}`],
    ['alg as a list [S01]', `${unsigned(['ES256'])}${signature}`],
    ['HS256 with the public key [S02]', hs256],
    ['an empty signature [S04]', `${header}.${payload}.`],
    ['a signature of zeros [S04]', `${header}.${payload}.${base64url.encode(new Uint8Array(64))}`],
    [
      'an embedded key in the header [S05]',
      await mint(own, { claims: goodClaims(), header: { jwk: own.publicJwk } }),
    ],
    [
      'jku [S05]',
      await mint(own, { claims: goodClaims(), header: { jku: `${stack.keySet.url}/evil` } }),
    ],
    [
      'kid as a path [S06]',
      await mint(own, { claims: goodClaims(), header: { kid: '../../dev/null' } }),
    ],
    [
      'kid as a prototype [S06]',
      await mint(own, { claims: goodClaims(), header: { kid: '__proto__' } }),
    ],
    [
      'crit [S09]',
      await admin({}, { crit: ['exp'], exp: 1 }).catch(() => `${header}.${payload}.x`),
    ],
    ['an ID token [S11]', await admin({}, { typ: 'JWT' })],
    ['a logout token [S11]', await admin({}, { typ: 'logout+jwt' })],
    ['an issuer with a slash [S12]', await admin({ iss: `${ISSUER}/` })],
    ['another issuer [S12]', await admin({ iss: REMOTE_ISSUER })],
    ['no audience [S13]', await admin({ aud: undefined })],
    ['an audience that begins like ours [S13]', await admin({ aud: `${AUDIENCE}.evil.test` })],
    ['expired [S14]', await admin({ iat: now() - 900, exp: now() - 300 })],
    ['an expiry as a string [S14]', await admin({ exp: undefined })],
    [
      'an expiry in text [S14]',
      await admin({ exp: '9999999999' as unknown as number }).catch(() => 'a.b.c'),
    ],
    ['not yet valid [S15]', await admin({ nbf: now() + 300 })],
    ['issued in the future [S15]', await admin({ iat: now() + 300, exp: now() + 600 })],
    ['no subject [S17]', await admin({ sub: undefined })],
    ['a subject with a line break [S17]', await admin({ sub: 'a\r\nX-Auth-Roles: admin' })],
    ['a changed payload [S18]', `${header}.${changed}.${signature}`],
    ['padding [S19]', `${good}=`],
    ['another last character [S19]', good.slice(0, -1) + (good.endsWith('A') ? 'B' : 'A')],
    ['two segments [S20]', `${header}.${payload}`],
    ['five segments [S20]', `${good}.${payload}.${signature}`],
    ['JSON serialization [S20]', JSON.stringify({ protected: header, payload, signature })],
    ['too long [S21]', `${header}.${payload}${'A'.repeat(17_000)}.${signature}`],
    ['a space in it [S28]', `${header}. ${payload}.${signature}`],
  ]
}

beforeEach(() => forget(stack.origin))

describe.each(guarded)('$name', (route) => {
  test('the valid token that the forgeries are based on is authenticated', async () => {
    const response = await send(route, { authorization: `bearer ${await admin()}` })
    expect(response.status).toBe(route.demandsRelation ? 403 : 200)
    expect((await recordsOf(stack.origin)).length).toBe(route.demandsRelation ? 0 : 1)
  })

  test('every forged token is refused with the same response [S01, S02, S04, S05, S06, S09, S11, S12, S13, S14, S15, S17, S18, S19, S20, S21, S28]', async () => {
    for (const [name, token] of await forgeries()) {
      const response = await send(route, { authorization: `Bearer ${token}` })
      expect(response.status, name).toBe(401)
      expect(response.headers.get('www-authenticate'), name).toContain('error="invalid_token"')
      const { code, detail } = (await response.json()) as Record<string, string>
      expect([code, detail], name).toEqual(['invalid_token', 'The bearer token is not valid here.'])
    }
    expect(await recordsOf(stack.origin)).toEqual([])
    const jwksRequests = await recordsOf(stack.keySet)
    expect(jwksRequests.filter(({ url }) => url.includes('evil'))).toEqual([])
  })

  test('two tokens are ambiguous, whichever is first [S28]', async () => {
    const [one, other] = [`Bearer ${await admin()}`, `Bearer ${await admin()}`]
    for (const authorization of [`${one}, ${other}`, `${other}, ${one}`, `${one}, Basic eA==`]) {
      const response = await send(route, { authorization })
      const { code } = (await response.json()) as { code?: string }
      expect([response.status, code]).toEqual([400, 'ambiguous_credentials'])
    }
    expect(await recordsOf(stack.origin)).toEqual([])
  })

  test('a token outside the Authorization header is ignored [S27]', async () => {
    const token = await admin()
    const attempts = [
      send(route, {}, `${route.path}?access_token=${token}`),
      send(route, { cookie: `access_token=${token}; Authorization=Bearer ${token}` }),
      send(route, { 'x-auth-assertion': token, 'x-auth-subject': 'admin' }),
      send(route, { 'proxy-authorization': `Bearer ${token}` }),
      send(route, { authorization: `Basic ${btoa(`admin:${token}`)}` }),
    ]
    for (const response of await Promise.all(attempts)) expect(response.status).toBe(401)
    expect(await recordsOf(stack.origin)).toEqual([])
  })

  test('undefined roles grant nothing [S25, S64]', async () => {
    for (const roles of [
      [],
      ['constructor'],
      ['__proto__'],
      ['Admin'],
      ['admin '],
      ['operator'],
      'x',
    ]) {
      const token = await mint(stack.inlineKey, { claims: { roles } })
      const response = await send(route, { authorization: `Bearer ${token}` })
      expect([401, 403], JSON.stringify(roles)).toContain(response.status)
    }
    expect(await recordsOf(stack.origin)).toEqual([])
  })

  test('a revoked token stays revoked in every spelling of the request [S31]', async () => {
    const { createHash } = await import('node:crypto')
    const jti = crypto.randomUUID()
    const hash = createHash('sha256')
      .update(JSON.stringify([ISSUER, jti]))
      .digest('base64url')
    const redis = keysOf(stack)
    await redis.setFact(`pc:revoked:${hash}`)
    redis.disconnect()
    const [token, good] = [await admin({ jti }), await admin()]
    const [header = '', payload = '', signature = ''] = token.split('.')
    const spellings = [
      `Bearer ${token}`,
      `bearer ${token}`,
      `BEARER ${token}`,
      `Bearer ${token}=`,
      `Bearer  ${token}`,
      `Bearer ${header}=.${payload}.${signature}`,
      `Bearer ${header}. ${payload}.${signature}`,
      ...[1, 2, 3].map((spare) => `Bearer ${withSpareBits(token, spare)}`),
    ]
    for (const authorization of spellings) {
      expect((await send(route, { authorization })).status, authorization).toBe(401)
    }
    for (const pair of [`Bearer ${good}, Bearer ${token}`, `Bearer ${token}, Bearer ${good}`])
      expect((await send(route, { authorization: pair })).status).toBe(400)
    // The same claims signed again: another string for the same token id.
    expect((await send(route, { authorization: `Bearer ${await admin({ jti })}` })).status).toBe(
      401,
    )
    expect(await recordsOf(stack.origin)).toEqual([])
  })
})

describe.each(guarded.filter(({ demandsRelation }) => !demandsRelation))('$name', (route) => {
  test('the origin receives only the gateway’s identity headers, each once [S54, S55, S59]', async () => {
    const token = await admin({ sub: 'alice' })
    const forged = [
      'X-Auth-Subject: eve',
      'x-auth-subject: eve',
      'X_Auth_Subject: eve',
      'X-Auth_Subject: eve',
      'X-AUTH-ROLES: root',
      'X-Auth-Assertion: a.b.c',
      'X-Auth-Anything: eve',
      'X-Request-Id: eve',
      // A proxy in front appends the address of its own client.
      'X-Forwarded-For: 203.0.113.9, 192.0.2.1',
      'X-Real-IP: 203.0.113.9',
      'Forwarded: for=203.0.113.9',
      'True-Client-IP: 203.0.113.9',
      'X-Original-URL: /admin',
      'Connection: close, X-Auth-Subject, Authorization',
      'TE: trailers',
      'Cookie: session=secret',
    ]
    const body = route.body ?? ''
    const answer = await sendRaw(
      here,
      [
        `${route.method} ${route.path} HTTP/1.1`,
        'Host: evil.test',
        `Authorization: Bearer ${token}`,
        ...forged,
        ...(body === ''
          ? []
          : ['Content-Type: application/json', `Content-Length: ${body.length}`]),
        '',
        body,
      ].join('\r\n'),
    )
    expect(answer.status).toBe(200)
    const [request] = await recordsOf(stack.origin)
    const headers = request?.headers ?? {}
    expect(headers['x-auth-subject']).toEqual(['alice'])
    expect(headers['x-auth-roles']).toEqual(['admin'])
    expect(headers['x-auth-assertion']?.length).toBe(1)
    // The client chooses the host of a route without one.
    expect(headers['x-forwarded-host']).toEqual(['evil.test'])
    const values = Object.entries(headers).flatMap(([name, all]) =>
      name === 'x-forwarded-host' ? [] : all,
    )
    // Compares whole values, because three letters may occur in a signature by chance.
    expect(values.filter((value) => value === 'eve' || value.startsWith('eve,'))).toEqual([])
    expect(values.join('\n')).not.toMatch(/203\.0\.113|a\.b\.c|session=secret|evil\.test/)
    for (const name of [
      'authorization',
      'cookie',
      'te',
      'x_auth_subject',
      'x-original-url',
      'forwarded',
    ]) {
      expect(headers, name).not.toHaveProperty([name])
    }
  })
})

const withBody = routes.filter(({ body }) => body !== undefined)
describe.each(withBody)('$name', (route) => {
  const folder = join(import.meta.dirname, '../vectors/json-test-suite/test_parsing')
  // All routes have one reader of JSON: each run sends all texts to one route on workerd, and some to the others.
  const isWhole = stack.runtime === 'workerd' && route === withBody[0]
  const all = readdirSync(folder)
  const files = isWhole
    ? all
    : [
        ...all.filter((name) => ODD.test(name)),
        ...everyOrAll(
          SAMPLED,
          all.filter((name) => !ODD.test(name)),
        ),
      ]

  test('no text of JSONTestSuite causes a 5xx, and only valid texts are accepted [S23, S63]', async () => {
    const token = await admin()
    for (const file of files) {
      const response = await fetch(here + route.path, {
        method: route.method,
        headers: {
          // Each text has its own budget.
          authorization: `Bearer ${file.startsWith('y') ? token : await admin()}`,
          'content-type': 'application/json',
        },
        body: readFileSync(join(folder, file)),
      })
      expect([400, 413, 422, 429], file).toContain(response.status)
    }
    expect(await recordsOf(stack.origin)).toEqual([])
  })
})

describe.each(routes)('$name', (route) => {
  test('oversized headers and tokens are refused, never with a 5xx [S21]', async () => {
    for (const headers of [
      { authorization: `Bearer ${'a'.repeat(20_000)}` },
      { authorization: `Bearer ${'.'.repeat(5_000)}` },
      { 'x-large': 'x'.repeat(15_000), authorization: 'Bearer a.b.c' },
    ]) {
      const { status } = await send(route, headers)
      expect(status).toBeGreaterThanOrEqual(400)
      expect(status).toBeLessThan(500)
    }
    expect(await recordsOf(stack.origin)).toEqual([])
  })
})
