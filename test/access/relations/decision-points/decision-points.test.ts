/** The requests to external policy decision points, and the meaning of their responses. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { escapeId } from '../../../../src/access/relations/tuple.ts'
import { Misconfigured } from '../../../../src/errors.ts'
import { createAuthzenDecisionPoint } from '../../../../src/features/authzen/decision-point.ts'
import { authzen } from '../../../../src/features/authzen/index.ts'
import { createOpenfgaDecisionPoint } from '../../../../src/features/openfga/decision-point.ts'
import { openfga } from '../../../../src/features/openfga/index.ts'
import { isolate, KINDS } from './adapters.ts'
import { decisionOf, query, STORES, startAuthority, type TestAuthority, TOKEN } from './servers.ts'

const HOSTILE = ['a:b', 'a#viewer', '*', 'a b', 'a\u0000b', 'a%3Ab', 'a@b', 'é', '\u202ea', 'a\n']
const escaped = (text: string) => escapeId(text) ?? ''

const WORLD = {
  none: [
    'doc:1#viewer@user:anne',
    'doc:2#viewer@group:eng#member',
    'group:eng#member@user:bob',
    'doc:public#viewer@user:*',
    ...Array.from({ length: 40 }, (_, n) => `group:g${n}#member@group:g${n + 1}#member`),
    'group:g40#member@user:deep',
    ...HOSTILE.map((id) => `doc:hostile#viewer@user:${escaped(id)}`),
  ],
  acme: ['doc:acme#viewer@user:anne', 'doc:shared#viewer@user:anne'],
  umbra: ['doc:umbra#viewer@user:anne', 'doc:shared#viewer@user:bob'],
}

let server: TestAuthority
beforeAll(async () => {
  server = await startAuthority(WORLD)
})
afterAll(() => server.close())
beforeEach(() => {
  server.requests.length = 0
  server.behavior = undefined
})

describe.each(KINDS)('%s', (kind) => {
  const decide = (tuple: string, more = {}) =>
    decisionOf(isolate(kind, server.url).authority, query(tuple, more))

  test('allows what the server allows, and denies everything else', async () => {
    expect(await decide('doc:1#viewer@user:anne')).toBe('allowed')
    expect(await decide('doc:1#viewer@user:bob')).toBe('denied')
    expect(await decide('doc:2#viewer@user:bob')).toBe('allowed')
    expect(await decide('doc:2#viewer@user:anne')).toBe('denied')
    expect(await decide('doc:public#viewer@user:anyone')).toBe('allowed')
    expect(server.requests).toHaveLength(5)
    expect(new Set(server.requests.map(({ headers }) => headers.authorization))).toEqual(
      new Set([`Bearer ${TOKEN}`]),
    )
  })

  test('distinguishes all ids', async () => {
    for (const one of HOSTILE) {
      server.world = { none: [`doc:1#viewer@user:${escaped(one)}`] }
      for (const other of HOSTILE) {
        const expected = one === other ? 'allowed' : 'denied'
        expect(await decide(`doc:1#viewer@user:${escaped(other)}`), `${one} ${other}`).toBe(
          expected,
        )
      }
      server.world = { none: [`doc:${escaped(one)}#viewer@user:anne`] }
      for (const other of HOSTILE) {
        const expected = one === other ? 'allowed' : 'denied'
        expect(await decide(`doc:${escaped(other)}#viewer@user:anne`)).toBe(expected)
      }
    }
    server.world = WORLD
  })

  test('answers a tenant from its own tuples, if ids are equal as well', async () => {
    const ofAcme = { tenant: 'acme' }
    const ofUmbra = { tenant: 'umbra' }
    expect(await decide('doc:acme#viewer@user:anne', ofAcme)).toBe('allowed')
    expect(await decide('doc:acme#viewer@user:anne', ofUmbra)).toBe('denied')
    expect(await decide('doc:acme#viewer@user:anne')).toBe('denied')
    expect(await decide('doc:shared#viewer@user:anne', ofAcme)).toBe('allowed')
    expect(await decide('doc:shared#viewer@user:anne', ofUmbra)).toBe('denied')
    expect(await decide('doc:1#viewer@user:anne', ofAcme)).toBe('denied')
  })

  test('denies a tenant that is not configured, without a call', async () => {
    for (const tenant of ['other', '', '*', '__proto__', 'constructor', 'ACME'])
      expect(await decide('doc:shared#viewer@user:anne', { tenant })).toBe('denied')
    expect(server.requests).toEqual([])
  })

  test('never has a token, a query or a response in an error', async () => {
    const { authority } = isolate(kind, server.url, { token: 'wrong-4711' })
    const error = await authority.check(query('doc:1#viewer@user:anne')).catch((thrown) => thrown)
    expect(error).toMatchObject({ dependency: 'authority', fault: 'refused' })
    const causes = []
    for (let cause = error; cause instanceof Error; cause = cause.cause) causes.push(cause.message)
    expect(causes.join(' ')).not.toMatch(/4711|anne|doc/)
    server.behavior = (response) => response.end(`{"allowed":${TOKEN}`)
    const failure = await isolate(kind, server.url)
      .authority.check(query('doc:1#viewer@user:anne'))
      .catch((thrown) => `${thrown.message} ${thrown.cause} ${thrown.cause?.cause}`)
    expect(failure).toMatch(/^authority: malformed/)
    expect(failure).not.toMatch(/4711|anne|doc/)
  })
})

describe('OpenFGA', () => {
  const decide = (tuple: string, more = {}) =>
    decisionOf(isolate('openfga', server.url).authority, query(tuple, more))

  test('receives the query in the form of a tuple, and nothing else', async () => {
    await decide('doc:1#viewer@user:a%3Ab')
    expect(server.requests).toMatchObject([
      {
        path: `/stores/${STORES.none}/check`,
        body: { tuple_key: { user: 'user:a%3Ab', relation: 'viewer', object: 'doc:1' } },
      },
    ])
    expect(Object.keys(server.requests[0]?.body ?? {})).toEqual(['tuple_key'])
    expect(server.requests[0]?.headers['content-type']).toBe('application/json')
  })

  test('decides by the configured model of the store', async () => {
    const model = 'M'.repeat(26)
    const stores = new Map([['', { store: STORES.none, model }]])
    const authority = createOpenfgaDecisionPoint({ url: server.url, token: TOKEN, stores })
    expect(await decisionOf(authority, query('doc:1#viewer@user:anne'))).toBe('allowed')
    expect(server.requests[0]?.body).toMatchObject({ authorization_model_id: model })
  })

  test('is called with higher consistency if a request must see a write', async () => {
    expect(await decide('doc:1#viewer@user:anne', { atLeast: 1 })).toBe('allowed')
    expect(server.requests[0]?.body).toMatchObject({ consistency: 'HIGHER_CONSISTENCY' })
    await decide('doc:1#viewer@user:anne', { atLeast: 0 })
    expect(server.requests[1]?.body).not.toHaveProperty('consistency')
  })

  test('supports contextual tuples, usersets and wildcards', async () => {
    const contextualTuples = [query('group:eng#member@user:anne')]
    expect(await decide('doc:2#viewer@user:anne', { contextualTuples })).toBe('allowed')
    expect(await decide('doc:2#viewer@user:anne')).toBe('denied')
    expect(await decide('doc:2#viewer@group:eng#member')).toBe('allowed')
    expect(await decide('doc:public#viewer@user:*')).toBe('allowed')
    expect(await decide('doc:1#viewer@user:*')).toBe('denied')
  })

  test('that exceeds its depth is unknown, and an undefined relation is an outage', async () => {
    expect(await decide('group:g0#member@user:deep')).toBe('unknown:max_depth_exceeded')
    expect(await decide('group:g30#member@user:deep')).toBe('allowed')
    expect(await decide('doc:1#nonsense@user:anne')).toBe('authority:refused')
  })

  test('is not called for names above its length limit, and the result is denied', async () => {
    const long = (type: string, length: number) => `${type}:${'é'.repeat(length - type.length - 1)}`
    expect(await decide(`${long('doc', 256)}#viewer@${long('user', 512)}`)).toBe('denied')
    expect(server.requests).toHaveLength(1)
    expect(await decide(`${long('doc', 257)}#viewer@user:anne`)).toBe('denied')
    expect(await decide(`doc:public#viewer@${long('user', 513)}`)).toBe('denied')
    const contextualTuples = [query(`${long('doc', 257)}#viewer@user:anne`)]
    expect(await decide('doc:1#viewer@user:anne', { contextualTuples })).toBe('denied')
    expect(server.requests).toHaveLength(1)
  })
})

describe('AuthZEN', () => {
  const decide = (tuple: string, more = {}) =>
    decisionOf(isolate('authzen', server.url).authority, query(tuple, more))

  test('receives type and id as separate members, and the tenant', async () => {
    await decide('doc:1#viewer@user:a%3Ab')
    await decide('doc:1#viewer@user:anne', { tenant: 'acme' })
    expect(server.requests.map(({ path, body }) => [path, body])).toEqual([
      [
        '/pdp/access/v1/evaluation',
        {
          subject: { type: 'user', id: 'a%3Ab' },
          resource: { type: 'doc', id: '1' },
          action: { name: 'viewer' },
        },
      ],
      [
        '/pdp/access/v1/evaluation',
        {
          subject: { type: 'user', id: 'anne' },
          resource: { type: 'doc', id: '1' },
          action: { name: 'viewer' },
          context: { tenant: 'acme' },
        },
      ],
    ])
  })

  test('is not called for a query that it cannot express, and the result is denied', async () => {
    server.behavior = (response) => response.end('{"decision":true}')
    expect(await decide('doc:2#viewer@group:eng#member')).toBe('denied')
    expect(await decide('doc:public#viewer@user:*')).toBe('denied')
    const contextualTuples = [query('group:eng#member@user:anne')]
    expect(await decide('doc:2#viewer@user:anne', { contextualTuples })).toBe('denied')
    expect(server.requests).toEqual([])
  })

  test('cannot guarantee to see a write: 503 instead of an older answer', async () => {
    expect(await decide('doc:1#viewer@user:anne', { atLeast: 1 })).toBe('authority:stale')
    expect(server.requests).toEqual([])
  })

  test.each([
    ['{"decision":true,"context":{"obligation":"redact"}}', 'authority:refused', 'allowed'],
    ['{"decision":true,"context":{}}', 'allowed', 'allowed'],
    ['{"decision":false,"context":{"reason":"no"}}', 'denied', 'denied'],
  ])('%s is %s, or %s if its context is ignored', async (answer, refusing, ignoring) => {
    server.behavior = (response) => response.end(answer)
    const urls = new Map([['', `${server.url}/pdp`]])
    const question = query('doc:1#viewer@user:anne')
    expect(await decisionOf(createAuthzenDecisionPoint({ urls }), question)).toBe(refusing)
    const tolerant = createAuthzenDecisionPoint({ urls, context: 'ignore' })
    expect(await decisionOf(tolerant, question)).toBe(ignoring)
  })

  test('may have one default server for all tenants without their own', async () => {
    const other = await startAuthority({ acme: ['doc:1#viewer@user:anne'] })
    const urls = new Map([
      ['*', `${server.url}/pdp`],
      ['acme', `${other.url}/pdp`],
    ])
    const authority = createAuthzenDecisionPoint({ urls, token: TOKEN })
    const of = (tenant: string | null, tuple: string) =>
      decisionOf(authority, query(tuple, { tenant }))
    expect(await of('acme', 'doc:1#viewer@user:anne')).toBe('allowed')
    expect(await of('acme', 'doc:acme#viewer@user:anne')).toBe('denied')
    expect(await of('umbra', 'doc:umbra#viewer@user:anne')).toBe('allowed')
    expect(await of(null, 'doc:1#viewer@user:anne')).toBe('allowed')
    expect([other.requests.length, server.requests.length]).toEqual([2, 2])
    await other.close()
  })
})

test('in a thousand queries with equal ids on both sides, no tenant gets the answer of another', async () => {
  const ids = ['1', '2', '3', '4', '5', '6']
  const pick = (n: number) => ids[n % ids.length] ?? ''
  const tuples = (seed: number) =>
    ids.flatMap((id, n) => ((n * seed) % 5 < 2 ? [`doc:${id}#viewer@user:${pick(n + seed)}`] : []))
  server.world = { none: tuples(1), acme: tuples(2), umbra: tuples(3) }
  const world: Readonly<Record<string, readonly string[]>> = server.world
  for (const kind of KINDS) {
    const { authority } = isolate(kind, server.url)
    const questions = Array.from({ length: 500 }, (_, n) => {
      const tenant = [null, 'acme', 'umbra'][n % 3] ?? null
      const tuple = `doc:${pick(Math.floor(n / 3))}#viewer@user:${pick(Math.floor(n / 18))}`
      return { tenant, tuple, isThere: world[tenant ?? 'none']?.includes(tuple) }
    })
    expect(new Set(questions.map(({ isThere }) => isThere))).toEqual(new Set([true, false]))
    for (let start = 0; start < questions.length; start += 25) {
      await Promise.all(
        questions.slice(start, start + 25).map(async ({ tenant, tuple, isThere }) => {
          const answer = await decisionOf(authority, query(tuple, { tenant }))
          expect(answer, `${tenant} ${tuple}`).toBe(isThere ? 'allowed' : 'denied')
        }),
      )
    }
  }
  server.world = WORLD
})

describe('the environment', () => {
  const none = { variables: {} }
  const EXTERNAL = { openfga: openfga(), authzen: authzen() }

  test('creates the decision point that the policy names', async () => {
    const variables = {
      OPENFGA_URL: server.url,
      OPENFGA_STORES: new Map([['', { store: STORES.none }]]),
      OPENFGA_TOKEN: TOKEN,
      AUTHZEN_URLS: new Map([['', `${server.url}/pdp`]]),
      AUTHZEN_TOKEN: TOKEN,
    }
    for (const authority of KINDS) {
      const made = EXTERNAL[authority].create({ variables })
      expect(await decisionOf(made, query('doc:1#viewer@user:anne'))).toBe('allowed')
      expect(await decisionOf(made, query('doc:1#viewer@user:bob'))).toBe('denied')
    }
    expect(new Set(server.requests.map(({ path }) => path)).size).toBe(2)
  })

  test.each([
    ['openfga', 'OPENFGA_URL'],
    ['authzen', 'AUTHZEN_URLS'],
  ] as const)('%s without %s is refused [R31]', (authority, variable) => {
    const make = () => EXTERNAL[authority].create(none)
    expect(make).toThrow(Misconfigured)
    expect(make).toThrow(variable)
  })
})
