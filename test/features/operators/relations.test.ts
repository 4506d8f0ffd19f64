import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { encodeConsistency } from '../../../src/access/relations/consistency.ts'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import { createGateway } from '../../../src/gateway/create-gateway.ts'
import type { Feature } from '../../../src/gateway/feature.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startHttpServer } from '../../harness/http-server.ts'
import {
  ISSUER,
  PUBLIC_URL,
  policy,
  REMOTE_ISSUER,
  startGateway,
  type TestGateway,
} from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())
beforeEach(() => gateway.redis.direct.flushall())

const HEADER = 'x-consistency-token'

/** Parses `order:1#viewer@user:a` into its parts. */
function tuple(text: string) {
  const [object = '', relation = '', subject = ''] = text.split(/#|@/, 3)
  return { object, relation, subject: text.slice(object.length + relation.length + 2) || subject }
}
const tuples = (...texts: string[]) => texts.map(tuple)
const write = (body: object, as?: string) =>
  gateway.admin('POST', '/relations', body, as === undefined ? {} : { as })
const list = (query: string, as?: string) =>
  gateway.admin('GET', `/relations${query}`, undefined, as === undefined ? {} : { as })
const check = (body: object, as?: string) =>
  gateway.admin('POST', '/check', body, as === undefined ? {} : { as })
const operatorOf = (tenant: string | undefined, issuer = ISSUER) =>
  gateway.token({ sub: 'olga', roles: ['operator'], tenant }, issuer)

describe('tuples', () => {
  test('take effect in the other isolate before the write returns, and disappear when deleted', async () => {
    const question = { object: 'order:7', relation: 'viewer', subject: 'user:alice' }
    const recheck = () => gateway.admin('POST', '/check', question, { at: 1 })
    expect((await recheck()).body).toMatchObject({ allowed: false, outcome: 'denied' })
    const writes = tuples('order:7#parent@folder:f', 'folder:f#viewer@user:alice')
    const written = await write({ writes })
    expect(written.status, written.text).toBe(200)
    expect(written.body).toEqual({
      written: 2,
      deleted: 0,
      consistencyToken: written.headers.get(HEADER),
    })
    const allowed = await recheck()
    expect(allowed.body).toEqual({
      allowed: true,
      outcome: 'allowed',
      consistencyToken: written.body.consistencyToken,
    })
    const again = await write({ writes: tuples('order:7#owner@user:bob'), deletes: [writes[0]] })
    expect(again.body).toMatchObject({ written: 1, deleted: 1 })
    expect((await recheck()).body.outcome).toBe('denied')
  })

  test('that exist are not written again, and a write can be repeated', async () => {
    const body = { writes: tuples('order:7#owner@user:a'), deletes: tuples('order:7#owner@user:b') }
    const [first, second] = [await write(body), await write(body)]
    expect([first.body.written, second.body.written]).toEqual([1, 0])
    expect(second.body.consistencyToken).not.toBe(first.body.consistencyToken)
  })

  test('are all audited, with their tenant', async () => {
    const body = {
      tenant: 'acme corp',
      writes: tuples('order:7#viewer@user:*', 'order:7#editor@team:a#member'),
      deletes: tuples('order:7#owner@user:b'),
    }
    await write(body)
    expect(gateway.events.at(-1)).toMatchObject({
      route: '/-/admin/relations',
      decision: 'allow',
      change: {
        action: 'relations.write',
        target:
          'tenant=acme%20corp +order:7#viewer@user:* +order:7#editor@team:a#member ' +
          '-order:7#owner@user:b',
      },
    })
    await list('')
    expect(gateway.events.at(-1)?.change).toBeUndefined()
  })

  test('are also audited when the result of the write is unknown', async () => {
    const hanging = await startHttpServer((_, response) => void response.destroy())
    // A proxy in front of Redis answers with a status; Redis reports its own errors for each
    // command.
    const failing = await startHttpServer((_, response) => void response.writeHead(504).end('{}'))
    const refusing = await startHttpServer((_, response) => void response.end('[{"error":"OOM"}]'))
    const body = JSON.stringify({ writes: tuples('order:7#owner@user:a') })
    const headers = {
      Authorization: `Bearer ${gateway.operator}`,
      'Content-Type': 'application/json',
      'CF-Connecting-IP': '192.0.2.1',
    }
    const changes: unknown[] = []
    for (const { url } of [hanging, failing, refusing]) {
      // The operator is admitted; only the tuples are out of reach.
      const rest = createRedisRest({ url, token: 'none' })
      const { relations } = policy
      if (relations === undefined) throw new Error('the policy has no relations')
      const { by }: { readonly by: Feature } = relations
      const unreachableCalls: Feature = {
        ...by,
        relations(config, parts) {
          const real = by.relations?.(config, parts)
          const cut = by.relations?.(config, { ...parts, redis: rest })
          if (real === undefined || cut === undefined) throw new Error('no services of relations')
          return { ...real, calls: cut.calls }
        },
      }
      const unreachable = { ...relations, by: unreachableCalls }
      const services = composeServices(gateway.env, { ...policy, relations: unreachable }, WORKERS)
      const auditSink = { record: (event: AuditEvent) => void changes.push(event.change) }
      const app = createGateway({ ...services, auditSink }, policy)
      const request = { method: 'POST', headers, body }
      expect((await app.request(`${PUBLIC_URL}/-/admin/relations`, request)).status).toBe(503)
    }
    for (const server of [hanging, failing, refusing]) await server.close()
    const unanswered = { action: 'relations.write-unanswered', target: '+order:7#owner@user:a' }
    expect(changes).toEqual([...[unanswered, unanswered], undefined])
  })

  test('are listed by page, object, relation and subject', async () => {
    const all = [
      'folder:f#viewer@user:a',
      'order:1#owner@user:a',
      'order:1#viewer@user:*',
      'order:1#viewer@user:a',
      'order:1#viewer@team:t#member',
      'order:10#viewer@user:a',
      'order:2#viewer@user:b',
      'team:t#member@user:a',
    ]
    await write({ writes: tuples(...all) })
    async function pages(query: string, limit: number) {
      const found: string[] = []
      let cursor: string | undefined
      do {
        const at = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`
        const { status, body, text } = await list(`?limit=${limit}${query}${at}`)
        expect(status, text).toBe(200)
        expect(body.tuples.length).toBeLessThanOrEqual(limit)
        for (const one of body.tuples) found.push(`${one.object}#${one.relation}@${one.subject}`)
        cursor = body.cursor
      } while (cursor !== undefined)
      return found
    }
    const of = (begin: string) => all.filter((text) => text.startsWith(begin))
    const by = (end: string) => all.filter((text) => text.endsWith(end))
    for (const limit of [1, 3, 8, 200]) {
      expect(await pages('', limit)).toEqual(all)
      expect(await pages('&object=order%3A', limit)).toEqual(of('order:'))
      expect(await pages('&object=order:1', limit)).toEqual(of('order:1#'))
      expect(await pages('&object=order:1&relation=viewer', limit)).toEqual(of('order:1#viewer'))
      expect(await pages('&subject=user:a', limit)).toEqual(by('@user:a'))
      expect(await pages('&subject=team:t%23member', limit)).toEqual(by('@team:t#member'))
      expect(await pages('&subject=user:a&object=order:1', limit)).toEqual([all[1], all[3]])
      expect(await pages('&object=nothing:', limit)).toEqual([])
    }
  })

  test.each([
    ['?object=order', '/object'],
    ['?object=order:*', '/object'],
    ['?object=:', '/object'],
    ['?object=order:a%23b', '/object'],
    ['?relation=viewer', '/relation'],
    ['?object=order:&relation=viewer', '/relation'],
    ['?object=order:1&relation=a%20b', '/relation'],
    ['?subject=alice', '/subject'],
    ['?subject=user:a%23', '/subject'],
    ['?cursor=x', '/cursor'],
    [`?cursor=${Buffer.from('order:1#viewer@user:a\n').toString('base64url')}`, '/cursor'],
    [
      `?object=team:&cursor=${Buffer.from('order:1#viewer@user:a').toString('base64url')}`,
      '/cursor',
    ],
    ['?limit=0', '/limit'],
    ['?limit=201', '/limit'],
    ['?tenant=', '/tenant'],
  ])('are not listed for %s', async (query, path) => {
    const { status, body } = await list(query)
    expect(status).toBe(422)
    expect(body.errors).toMatchObject([{ in: 'query', path }])
  })

  test('that the model does not permit are each refused with a pointer, and none is written', async () => {
    const good = 'order:1#owner@user:a'
    const wrong: readonly (readonly [string, string, RegExp])[] = [
      ['order#owner@user:a', 'object', /must be an object/],
      ['order:*#owner@user:a', 'object', /must be an object/],
      ['bill:1#owner@user:a', 'object', /type that the model does not define/],
      ['order:1#own@user:a', 'relation', /must be a relation of order/],
      ['order:1#can_edit@user:a', 'relation', /tuples cannot assign it/],
      ['order:1#owner@user', 'subject', /must be a subject/],
      ['order:1#owner@robot:a', 'subject', /type that the model does not define/],
      ['order:1#editor@team:a#lead', 'subject', /relation that its type does not define/],
      ['order:1#owner@user:*', 'subject', /^order#owner can be assigned to user only$/],
      [
        'order:1#editor@team:a',
        'subject',
        /^order#editor can be assigned to user, team#member only$/,
      ],
      ['order:1#owner@team:a#member', 'subject', /can be assigned to user only/],
    ]
    const reply = await write({ writes: tuples(good, ...wrong.map(([text]) => text)) })
    expect(reply.status).toBe(422)
    expect(reply.body.errors).toHaveLength(wrong.length)
    for (const [index, [, part, message]] of wrong.entries()) {
      expect(reply.body.errors[index].path).toBe(`/writes/${index + 1}/${part}`)
      expect(reply.body.errors[index].message).toMatch(message)
    }
    expect(await gateway.redis.direct.keys('pc:tuple*')).toEqual([])
    expect(gateway.events.at(-1)?.change).toBeUndefined()
  })

  test('that a newer model does not permit can still be listed and deleted', async () => {
    const direct = gateway.redis.direct
    await direct.zadd('pc:tuples::order:1#gone', 0, 'robot:a')
    await direct.zadd('pc:tuple-index::order', 0, 'order:1#gone')
    await direct.zadd('pc:subject-tuples::robot:a', 0, 'order:1#gone')
    const [found] = (await list('?object=order:1')).body.tuples
    expect(found).toEqual({ object: 'order:1', relation: 'gone', subject: 'robot:a' })
    expect((await write({ deletes: [found] })).body.deleted).toBe(1)
    expect(await direct.keys('pc:*tuple*')).toEqual([])
  })

  test.each([
    ['nothing to do', {}, ''],
    ['nothing in its lists', { writes: [], deletes: [] }, ''],
    [
      'a tuple twice',
      { writes: tuples('order:1#owner@user:a', 'order:1#owner@user:a') },
      '/writes/1',
    ],
    [
      'a tuple written and deleted',
      { writes: tuples('order:1#owner@user:a'), deletes: tuples('order:1#owner@user:a') },
      '/deletes/0',
    ],
    ['a condition', { writes: [{ ...tuple('order:1#owner@user:a'), condition: {} }] }, '/writes/0'],
  ])('are refused with %s', async (_, body, path) => {
    const reply = await write(body)
    expect(reply.status, reply.text).toBe(422)
    expect(reply.body.errors[0]).toMatchObject({ in: 'body', path })
  })

  test('are limited to 100 writes and deletes together, and to 24 KB', async () => {
    const many = (count: number, id = '') =>
      Array.from({ length: count }, (_, n) => tuple(`order:${n}${id}#owner@user:a`))
    expect((await write({ writes: many(60), deletes: many(40, 'x') })).status).toBe(200)
    const more = await write({ writes: many(60), deletes: many(41, 'x') })
    expect(more.body.errors).toMatchObject([{ path: '', message: expect.stringContaining('100') }])
    const long = await write({ writes: many(100, 'x'.repeat(250)) })
    expect(long.status).toBe(422)
    expect(long.body.errors).toMatchObject([
      { path: '', message: expect.stringContaining('24 KB') },
    ])
    const larger = await write({ writes: many(100, 'x'.repeat(700)) })
    expect(larger.status).toBe(413)
    const fits = many(100, 'x'.repeat(200))
    expect((await write({ writes: fits })).status).toBe(200)
    const { target = '' } = gateway.events.at(-1)?.change ?? {}
    expect(target.split(' ')).toHaveLength(100)
  })
})

describe('a check', () => {
  const question = { object: 'order:1', relation: 'viewer', subject: 'user:a' }

  test('uses contextual tuples for this check only', async () => {
    const contextualTuples = tuples('order:1#owner@user:a')
    expect((await check({ ...question, contextualTuples })).body.outcome).toBe('allowed')
    expect((await check(question)).body.outcome).toBe('denied')
    const wrong = await check({ ...question, contextualTuples: tuples('order:1#owner@user:*') })
    expect(wrong.body.errors).toMatchObject([{ path: '/contextualTuples/0/subject' }])
    const many = Array.from({ length: 21 }, (_, n) => tuple(`order:1#owner@user:${n}`))
    expect((await check({ ...question, contextualTuples: many })).status).toBe(422)
  })

  test('accepts usersets and wildcards as subjects', async () => {
    await write({ writes: tuples('order:1#editor@team:a#member', 'order:1#viewer@user:*') })
    const of = async (relation: string, subject: string) =>
      (await check({ object: 'order:1', relation, subject })).body.outcome
    expect(await of('can_edit', 'team:a#member')).toBe('allowed')
    expect(await of('viewer', 'user:*')).toBe('allowed')
    expect(await of('can_edit', 'user:*')).toBe('denied')
  })

  test.each([
    [{ object: 'order' }, '/object'],
    [{ object: 'bill:1' }, '/object'],
    [{ relation: 'own' }, '/relation'],
    [{ subject: 'a' }, '/subject'],
    [{ subject: 'robot:a' }, '/subject'],
    [{ subject: 'team:a#lead' }, '/subject'],
    [{ consistencyToken: 'x' }, '/consistencyToken'],
    [{ consistencyToken: encodeConsistency(1, 'acme') }, '/consistencyToken'],
    [{ consistencyToken: encodeConsistency(2 ** 53 - 1, null) }, '/consistencyToken'],
    [{ tenant: 'globex', consistencyToken: encodeConsistency(1, 'acme') }, '/consistencyToken'],
  ])('is refused with %j', async (wrong, path) => {
    const { status, body } = await check({ ...question, ...wrong })
    expect(status).toBe(422)
    expect(body.errors).toMatchObject([{ in: 'body', path }])
  })

  test('with the token of a write that Redis lost is 503 until the next write', async () => {
    const { body } = await write({ writes: tuples('order:1#owner@user:a') })
    const { consistencyToken } = body
    expect((await check({ ...question, consistencyToken })).body.outcome).toBe('allowed')
    await gateway.redis.direct.flushall()
    const stale = await check({ ...question, consistencyToken })
    expect(stale.status).toBe(503)
    expect(gateway.events.at(-1)).toMatchObject({ decision: 'error', reason: 'redis:stale' })
    await write({ writes: tuples('order:2#owner@user:a') })
    expect((await check({ ...question, consistencyToken })).body.outcome).toBe('denied')
  })

  test('returns a trace to operators who may read tuples', async () => {
    await write({ writes: tuples('order:1#editor@team:a#member', 'team:a#member@user:a') })
    const traced = { object: 'order:1', relation: 'can_edit', subject: 'user:a', trace: true }
    const { body } = await check(traced)
    expect(body).toMatchObject({ allowed: true, trace: { truncated: false } })
    expect(JSON.stringify(body.trace)).toContain('team:a#member@user:a')
    const as = await gateway.token({ roles: [], scope: 'portcullis:relations:check' })
    const reply = await check(traced, as)
    expect(reply.status).toBe(403)
    expect(reply.headers.get('www-authenticate')).toContain('scope="portcullis:relations:read"')
    expect((await check({ ...traced, trace: false }, as)).status).toBe(200)
  })
})

describe('an expansion', () => {
  const expand = (object: string, relation: string) =>
    gateway.admin('POST', '/expand', { object, relation })

  test('returns one level, in the form of OpenFGA', async () => {
    const { body: written } = await write({
      writes: tuples(
        'order:1#viewer@user:a',
        'order:1#viewer@user:*',
        'order:1#viewer@team:t#member',
        'order:1#parent@folder:f',
        'order:1#parent@folder:g',
      ),
    })
    await gateway.redis.direct.zadd('pc:tuples::order:1#viewer', 0, 'folder:not-permitted')
    await gateway.redis.direct.zadd('pc:usersets::order:1#parent', 0, 'team:t#member')
    const name = 'order:1#viewer'
    const { status, body } = await expand('order:1', 'viewer')
    expect(status).toBe(200)
    expect(body).toEqual({
      tree: {
        root: {
          name,
          union: {
            nodes: [
              { name, leaf: { users: { users: ['user:*', 'user:a', 'team:t#member'] } } },
              { name, leaf: { computed: { userset: 'order:1#owner' } } },
              {
                name,
                leaf: {
                  tupleToUserset: {
                    tupleset: 'order:1#parent',
                    computed: [{ userset: 'folder:f#viewer' }, { userset: 'folder:g#viewer' }],
                  },
                },
              },
            ],
          },
        },
      },
      consistencyToken: written.consistencyToken,
    })
    expect((await expand('order:1', 'can_edit')).body.tree.root).toEqual({
      name: 'order:1#can_edit',
      difference: {
        base: { name: 'order:1#can_edit', leaf: { computed: { userset: 'order:1#editor' } } },
        subtract: { name: 'order:1#can_edit', leaf: { computed: { userset: 'order:1#blocked' } } },
      },
    })
  })

  test('returns 1,000 subjects and a flag for more', async () => {
    const members = Array.from({ length: 1_200 }, (_, n) => [0, `user:${n}`])
    await gateway.redis.direct.zadd('pc:tuples::team:t#member', ...members.flat())
    const { leaf } = (await expand('team:t', 'member')).body.tree.root
    expect(leaf.users.users).toHaveLength(1_000)
    expect(leaf.users.hasMore).toBe(true)
  })

  test.each([
    ['order', 'viewer', '/object'],
    ['bill:1', 'viewer', '/object'],
    ['order:1', 'own', '/relation'],
  ])('is refused for %s#%s', async (object, relation, path) => {
    const { status, body } = await expand(object, relation)
    expect(status).toBe(422)
    expect(body.errors).toMatchObject([{ in: 'body', path }])
  })
})

describe("an operator's tenant", () => {
  const writes = tuples('order:1#owner@user:a')
  const question = { object: 'order:1', relation: 'owner', subject: 'user:a' }

  test('is the only tenant that the operator can act for', async () => {
    const [acme, globex] = [await operatorOf('acme'), await operatorOf('globex')]
    expect((await write({ writes }, acme)).status).toBe(200)
    expect((await check(question, acme)).body.outcome).toBe('allowed')
    expect((await check({ ...question, tenant: 'acme' }, acme)).body.outcome).toBe('allowed')
    for (const body of [
      (await check(question, globex)).body,
      (await check(question)).body,
      (await check({ ...question, tenant: 'globex' })).body,
    ])
      expect(body.outcome).toBe('denied')
    expect((await check({ ...question, tenant: 'acme' })).body.outcome).toBe('allowed')
    expect((await list('', globex)).body.tuples).toEqual([])
    expect((await list('?tenant=acme')).body.tuples).toEqual(writes)
  })

  test('forbids other tenants by name', async () => {
    const acme = await operatorOf('acme')
    const expansion = { object: 'order:1', relation: 'owner', tenant: 'globex' }
    for (const reply of [
      await write({ writes, tenant: 'globex' }, acme),
      await list('?tenant=globex', acme),
      await check({ ...question, tenant: 'globex' }, acme),
      await gateway.admin('POST', '/expand', expansion, { as: acme }),
    ]) {
      expect(reply.status).toBe(403)
      expect(reply.body.code).toBe('insufficient_permission')
    }
    expect(await gateway.redis.direct.keys('pc:*tuple*')).toEqual([])
  })

  test("counts as foreign if the policy's relations do not name its issuer", async () => {
    const stranger = await operatorOf('acme', REMOTE_ISSUER)
    expect((await write({ writes }, stranger)).status).toBe(403)
    expect((await check({ ...question, tenant: 'acme' }, stranger)).status).toBe(403)
    const everybodys = await operatorOf(undefined, REMOTE_ISSUER)
    expect((await write({ writes, tenant: 'acme' }, everybodys)).status).toBe(200)
  })

  test("makes the consistency token of another tenant's write invalid", async () => {
    const { consistencyToken } = (await write({ writes, tenant: 'acme' })).body
    expect((await check({ ...question, tenant: 'acme', consistencyToken })).status).toBe(200)
    expect((await check({ ...question, consistencyToken })).status).toBe(422)
  })
})

test('without relations in the policy these calls do not exist, and nothing is written', async () => {
  const without = definePolicy({
    roles: { operator: ['portcullis:*'] },
    limits: {},
    features: [operators()],
    routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
  })
  const app = createGateway(composeServices(gateway.env, without, WORKERS), without)
  const headers = {
    Authorization: `Bearer ${gateway.operator}`,
    'Content-Type': 'application/json',
    'CF-Connecting-IP': '192.0.2.1',
  }
  const question = tuple('order:1#owner@user:a')
  for (const [path, body] of [
    ['relations', { writes: [question] }],
    ['relations', undefined],
    ['check', question],
    ['expand', { object: 'order:1', relation: 'owner' }],
  ] as const) {
    const reply = await app.request(`${PUBLIC_URL}/-/admin/${path}`, {
      headers,
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    })
    expect(reply.status).toBe(404)
  }
  expect(await gateway.redis.direct.keys('pc:*tuple*')).toEqual([])
})
