/** The policy tester: callers, time, revocation, relations, and the clear errors of wrong use. */
import { definePolicy } from 'portcullis'
import { relations } from 'portcullis/relations'
import { policyTest, policyTester } from 'portcullis/testing'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { Misconfigured } from '../../src/errors.ts'
import { fetchesOf } from '../harness/own-calls.ts'

const model = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'note',
      relations: { viewer: { this: {} } },
      metadata: { relations: { viewer: { directly_related_user_types: [{ type: 'user' }] } } },
    },
  ],
}
const policy = definePolicy({
  roles: { reader: ['notes:read'], writer: ['notes:*'] },
  limits: { standard: { limit: 2, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' } },
  relations: relations({ model, issuers: ['https://issuer.test'] }),
  routes: [
    { method: 'GET', path: '/notes', permission: 'notes:read' },
    { method: 'GET', path: '/limited', permission: 'notes:read', limits: ['standard'] },
    {
      method: 'GET',
      path: '/notes/:id',
      permission: 'notes:read',
      relation: { object: 'note:{params.id}', relation: 'viewer' },
    },
    {
      method: 'POST',
      path: '/notes',
      permission: 'notes:write',
      input: { body: z.strictObject({ text: z.string() }) },
    },
    { method: 'PUT', path: '/files/:name', permission: 'notes:write' },
  ],
})
const reader = { sub: 'alice', roles: ['reader'] }
const writer = { sub: 'bob', roles: ['writer'], tenant: 'acme', session: 's1', client: 'app' }

describe('policyTester', () => {
  test('reports what the origin gets for an allowed request', async () => {
    const tester = policyTester(policy)
    const body = { text: 'hello' }
    expect(await tester.request('POST /notes?draft=1', { as: writer, body })).toMatchObject({
      allowed: true,
      status: 200,
      route: '/notes',
      reason: 'ok',
      origin: {
        method: 'POST',
        path: '/notes?draft=1',
        headers: {
          'x-auth-subject': 'bob',
          'x-auth-roles': 'writer',
          'x-auth-tenant': 'acme',
          'x-auth-client': 'app',
          'content-type': 'application/json',
        },
        body: JSON.stringify(body),
      },
    })
  })

  test('reports the problem and the precise reason for a refused request', async () => {
    const tester = policyTester(policy)
    const refused = await tester.request('POST /notes', { as: reader, body: { text: '' } })
    expect(refused).toMatchObject({
      allowed: false,
      status: 403,
      code: 'insufficient_permission',
      reason: 'permission_missing:notes:write',
    })
    expect(await refused.response.json()).toMatchObject({ code: 'insufficient_permission' })
    expect(await tester.request('GET /notes')).toMatchObject({ status: 401, code: 'missing_token' })
    expect(await tester.request('GET /other')).toMatchObject({ status: 404, route: null })
  })

  test('makes no network call', async () => {
    const request = () => policyTester(policy).request('GET /limited', { as: reader })
    expect(await fetchesOf(request)).toEqual([])
  })

  test('the response of a given origin reaches the caller as through the gateway', async () => {
    const tester = policyTester(policy, {
      origin: async (request) =>
        Response.json({ got: await request.text() }, { status: 201, headers: { server: 'x' } }),
    })
    const decision = await tester.request('PUT /files/a', { as: writer, body: 'text' })
    expect(decision).toMatchObject({ allowed: true, status: 201 })
    expect(decision.response.headers.has('server')).toBe(false)
    expect(await decision.response.json()).toEqual({ got: 'text' })
  })

  test('an origin that fails is a 502, not an allowed request', async () => {
    const tester = policyTester(policy, {
      origin: () => {
        throw new TypeError('connection refused')
      },
    })
    expect(await tester.request('GET /notes', { as: reader })).toMatchObject({
      allowed: false,
      status: 502,
      code: 'origin_unreachable',
    })
  })

  test('limits refuse until the clock of the tester has moved', async () => {
    const tester = policyTester(policy)
    const statusOf = async () => (await tester.request('GET /limited', { as: reader })).status
    expect([await statusOf(), await statusOf(), await statusOf()]).toEqual([200, 200, 429])
    tester.advanceSeconds(59)
    const refused = await tester.request('GET /limited', { as: reader })
    expect(refused).toMatchObject({ code: 'rate_limited', reason: 'rate_limited:standard' })
    expect(refused.response.headers.get('retry-after')).toBe('1')
    expect(refused.response.headers.get('ratelimit')).toBe('"standard";r=0;t=1')
    tester.advanceSeconds(1)
    expect(await statusOf()).toBe(200)
  })

  test('a start time in another year decides alike', async () => {
    const tester = policyTester(policy, { startMs: Date.UTC(2001, 0, 1) })
    const first = await tester.request('GET /limited', { as: reader })
    expect(first).toMatchObject({ allowed: true })
    expect(first.response.headers.get('ratelimit')).toBe('"standard";r=1;t=60')
  })

  test('a token that was signed before expires, and a caller of `as` gets a new one', async () => {
    const tester = policyTester(policy)
    const token = await tester.token(reader)
    expect(await tester.token({ ...reader })).toBe(token)
    tester.advanceSeconds(700)
    expect(await tester.request('GET /notes', { token })).toMatchObject({
      code: 'invalid_token',
      reason: 'token_rejected:exp',
    })
    expect(await tester.request('GET /notes', { as: reader })).toMatchObject({ allowed: true })
  })

  test.each([
    [{ sub: 'bob' }, 'subject'],
    [{ client: 'app' }, 'client'],
    [{ tenant: 'acme' }, 'tenant'],
    [{ session: 's1' }, 'session'],
  ])('revokes %o: present tokens are refused, later ones are not', async (revocation, kind) => {
    const tester = policyTester(policy)
    const token = await tester.token(writer)
    expect(await tester.request('GET /notes', { token })).toMatchObject({ allowed: true })
    await tester.revoke(revocation)
    expect(await tester.request('GET /notes', { token })).toMatchObject({
      status: 401,
      reason: `token_revoked:${kind}`,
    })
    expect(await tester.request('GET /notes', { as: reader })).toMatchObject({ allowed: true })
    tester.advanceSeconds(601)
    expect(await tester.request('GET /notes', { as: writer })).toMatchObject({ allowed: true })
  })

  test('revokes one token, and no other of its subject', async () => {
    const tester = policyTester(policy)
    const token = await tester.token(writer)
    const other = await tester.token({ ...writer, expiresInSeconds: 300 })
    await tester.revoke({ token })
    expect(await tester.request('GET /notes', { token })).toMatchObject({
      reason: 'token_revoked:token',
    })
    expect(await tester.request('GET /notes', { token: other })).toMatchObject({ allowed: true })
  })

  test('an API key has its own roles', async () => {
    const tester = policyTester(policy)
    const token = await tester.apiKey({ sub: 'ci', roles: ['reader'] })
    expect(await tester.request('GET /notes', { token })).toMatchObject({
      allowed: true,
      origin: { headers: { 'x-auth-subject': 'ci', 'x-auth-issuer': 'https://gateway.test' } },
    })
    const body = { text: '' }
    expect(await tester.request('POST /notes', { token, body })).toMatchObject({ status: 403 })
  })

  test('relations are those that the test gives, and none by default', async () => {
    const tester = policyTester(policy, {
      relations: ({ object, relation, subject }) =>
        `${object}#${relation}@${subject}` === 'note:1#viewer@user:alice',
    })
    expect(await tester.request('GET /notes/1', { as: reader })).toMatchObject({ allowed: true })
    for (const [some, path] of [
      [tester, 'GET /notes/2'],
      [policyTester(policy), 'GET /notes/1'],
    ] as const)
      expect(await some.request(path, { as: reader })).toMatchObject({
        status: 403,
        reason: expect.stringMatching(/^relation_missing:/),
      })
  })

  test('five violations ban a caller, and the ban ends', async () => {
    const tester = policyTester(policy)
    const request = () => tester.request('GET /limited', { as: reader })
    for (let sent = 0; sent < 8; sent++) {
      await request()
      tester.advanceSeconds(5)
    }
    expect(await request()).toMatchObject({ status: 403, code: 'banned', reason: 'banned:subject' })
    expect(await tester.request('GET /limited', { as: writer })).toMatchObject({ allowed: true })
    tester.advanceSeconds(3_600)
    expect(await request()).toMatchObject({ allowed: true })
  })

  test('concurrent requests have their own decisions', async () => {
    const tester = policyTester(policy)
    const decisions = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        tester.request('GET /notes', { as: { sub: `user-${index}`, roles: ['reader'] } }),
      ),
    )
    for (const [index, decision] of decisions.entries())
      expect(decision).toMatchObject({ origin: { headers: { 'x-auth-subject': `user-${index}` } } })
  })

  test('callers of several issuers are different callers', async () => {
    const tester = policyTester(policy, { issuers: ['https://a.test', 'https://b.test'] })
    const ofA = { ...reader, issuer: 'https://a.test' }
    const ofB = { ...reader, issuer: 'https://b.test' }
    for (const as of [ofA, ofA, ofB, ofB])
      expect(await tester.request('GET /limited', { as })).toMatchObject({
        allowed: true,
        origin: { headers: { 'x-auth-issuer': as.issuer } },
      })
    expect(await tester.request('GET /limited', { as: ofA })).toMatchObject({ status: 429 })
    await expect(tester.token({ issuer: 'https://c.test' })).rejects.toThrow(
      'https://c.test is not in the `issuers` of the tester',
    )
  })

  test.each([
    ['text', 'hello', 'text/plain;charset=UTF-8', 'hello'],
    [
      'a form',
      new URLSearchParams({ a: '1' }),
      'application/x-www-form-urlencoded;charset=UTF-8',
      'a=1',
    ],
    ['bytes', new TextEncoder().encode('x'), undefined, 'x'],
    ['a stream', new Blob(['y']).stream(), undefined, 'y'],
    ['JSON', ['z'], 'application/json', '["z"]'],
  ])('sends a body that is %s', async (_, body, type, text) => {
    const decision = await policyTester(policy).request('PUT /files/a', { as: writer, body })
    expect(decision).toMatchObject({ allowed: true, origin: { body: text } })
    expect(decision.allowed && decision.origin?.headers['content-type']).toBe(type)
  })

  test('a HEAD request is decided like GET, without a problem document', async () => {
    const tester = policyTester(policy)
    expect(await tester.request('HEAD /notes', { as: reader })).toMatchObject({ allowed: true })
    expect(await tester.request('HEAD /notes')).toMatchObject({
      status: 401,
      code: undefined,
      reason: 'missing_token',
    })
  })

  test('the gateway answers its own paths without the origin', async () => {
    const decision = await policyTester(policy).request('GET /-/healthz')
    expect(decision).toMatchObject({ allowed: true, status: 200, origin: undefined })
  })

  test('wrong use is a clear error', async () => {
    const tester = policyTester(policy)
    for (const line of ['/notes', 'GET notes', 'get /notes', 'GET  /notes', ''])
      await expect(tester.request(line)).rejects.toThrow(/must have the form "GET \/path"/)
    await expect(tester.request('GET /notes', { as: reader, token: 'x' })).rejects.toThrow(
      'has both `as` and `token`',
    )
    // @ts-expect-error: the definition is not a policy
    expect(() => policyTester({ roles: {} })).toThrow(Misconfigured)
  })
})

describe('a credential that is not in Authorization', () => {
  const tokenSources = [{ header: 'X-Token' }, { cookie: '__Host-token' }]

  test('is sent where the test says', async () => {
    const tester = policyTester(policy, { tokenSources })
    for (const source of tokenSources)
      expect(await tester.request('GET /notes', { as: reader, source })).toMatchObject({
        allowed: true,
        origin: { headers: { 'x-auth-subject': 'alice' } },
      })
    const [, source] = tokenSources
    expect(
      await tester.request('POST /notes', { as: writer, source, body: { text: 'a' } }),
    ).toMatchObject({ status: 403, code: 'cross_origin_request' })
    expect(await tester.request('GET /notes', { as: reader })).toMatchObject({
      code: 'invalid_token',
      reason: 'token_rejected:source',
    })
  })

  test('is an API key if the policy names its source', async () => {
    const sources = [{ header: 'X-API-Key' }]
    const tester = policyTester(
      definePolicy({
        roles: { reader: ['notes:read'] },
        limits: {},
        tokens: { sources },
        routes: [{ method: 'GET', path: '/notes', permission: 'notes:read' }],
      }),
    )
    const token = await tester.apiKey({ sub: 'job', roles: ['reader'] })
    const [source] = sources
    expect(await tester.request('GET /notes', { token, source })).toMatchObject({ allowed: true })
    expect(await tester.request('GET /notes', { token })).toMatchObject({ code: 'invalid_token' })
  })
})

describe('policyTest', () => {
  const rows = [
    { request: 'GET /notes', expect: 'missing_token' },
    { request: 'GET /notes', as: reader, expect: 'allowed' },
    { request: 'GET /limited', as: reader, expect: 200 },
    { request: 'POST /notes', as: reader, body: {}, expect: 'insufficient_permission' },
    { request: 'POST /notes', as: writer, body: {}, expect: 422 },
  ] as const

  test('passes if every row has the expected decision, each with limits of its own', async () => {
    await policyTest(policy, [...rows, ...rows, ...rows])
  })
})
