/**
 * The adapters in front of OpenFGA, which serves both APIs: a recording, and the real server if it
 * is installed.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { escapeId } from '../../../../src/access/relations/tuple.ts'
import { createAuthzenDecisionPoint } from '../../../../src/features/authzen/decision-point.ts'
import { createOpenfgaDecisionPoint } from '../../../../src/features/openfga/decision-point.ts'
import type { OpenfgaStore } from '../../../../src/validators/decision-points.ts'
import { type OpenfgaServer, openfgaServers } from './openfga-server.ts'
import { decisionOf, query, TOKEN } from './servers.ts'

const direct = (...types: object[]) => ({ directly_related_user_types: types })
const user = { type: 'user' }
const member = { type: 'group', relation: 'member' }
const MODEL = {
  schema_version: '1.1',
  type_definitions: [
    user,
    {
      type: 'group',
      relations: { member: { this: {} } },
      metadata: { relations: { member: direct(user, member) } },
    },
    {
      type: 'doc',
      relations: {
        viewer: { this: {} },
        banned: { this: {} },
        reader: {
          difference: {
            base: { computedUserset: { relation: 'viewer' } },
            subtract: { computedUserset: { relation: 'banned' } },
          },
        },
      },
      metadata: {
        relations: {
          viewer: direct(user, member, { type: 'user', wildcard: {} }),
          banned: direct(user),
          reader: direct(),
        },
      },
    },
  ],
}
const tuple = (object: string, relation: string, subject: string) => ({
  user: subject,
  relation,
  object,
})
const UNUSUAL = ['a:b', 'a#viewer', '*', 'a b', 'a\u0000b', 'a%3Ab', 'é|x', '\u202ea', 'a\n', '語']
const escaped = (text: string) => escapeId(text) ?? ''

describe.each(openfgaServers('adapters', TOKEN))('$server', ({ start }) => {
  let server: OpenfgaServer
  let one: { store: string; model: string }
  let other: { store: string; model: string }
  beforeAll(async () => {
    server = await start()
    one = await server.store(MODEL, [
      tuple('doc:1', 'viewer', 'user:anne'),
      tuple('doc:1', 'viewer', 'user:mallory'),
      tuple('doc:1', 'banned', 'user:mallory'),
      tuple('doc:2', 'viewer', 'group:eng#member'),
      tuple('group:eng', 'member', 'user:bob'),
      tuple('doc:public', 'viewer', 'user:*'),
      ...UNUSUAL.map((id, n) => tuple(`doc:odd${n}`, 'viewer', `user:${escaped(id)}`)),
      ...Array.from({ length: 40 }, (_, n) =>
        tuple(`group:g${n}`, 'member', `group:g${n + 1}#member`),
      ),
      tuple('group:g40', 'member', 'user:deep'),
    ])
    other = await server.store(MODEL, [tuple('doc:1', 'viewer', 'user:umbra')])
  })
  afterAll(() => server.stop())

  const common = { token: TOKEN, timeoutMs: 5_000 }
  const openfga = () =>
    createOpenfgaDecisionPoint({
      url: server.url,
      ...common,
      stores: new Map<string, OpenfgaStore>([
        ['', one],
        ['umbra', other],
        ['lost', { store: '0'.repeat(26) }],
        ['mixed', { store: other.store, model: one.model }],
      ]),
    })
  const authzen = () =>
    createAuthzenDecisionPoint({
      urls: new Map([
        ['', `${server.url}/stores/${one.store}`],
        ['umbra', `${server.url}/stores/${other.store}`],
      ]),
      ...common,
    })

  test.each([
    ['openfga', openfga],
    ['authzen', authzen],
  ])('%s returns the decisions of the server', async (_, make) => {
    const authority = make()
    const decide = (tuple: string, more = {}) => decisionOf(authority, query(tuple, more))
    expect(await decide('doc:1#viewer@user:anne')).toBe('allowed')
    expect(await decide('doc:1#viewer@user:bob')).toBe('denied')
    expect(await decide('doc:2#viewer@user:bob')).toBe('allowed')
    expect(await decide('doc:1#viewer@user:mallory')).toBe('allowed')
    expect(await decide('doc:1#reader@user:mallory')).toBe('denied')
    expect(await decide('doc:1#reader@user:anne')).toBe('allowed')
    expect(await decide('doc:public#reader@user:anyone')).toBe('allowed')
    expect(await decide('doc:1#viewer@user:umbra')).toBe('denied')
    expect(await decide('doc:1#viewer@user:umbra', { tenant: 'umbra' })).toBe('allowed')
    expect(await decide('doc:1#viewer@user:anne', { tenant: 'umbra' })).toBe('denied')
    expect(await decide('doc:1#nonsense@user:anne')).toBe('authority:refused')
    expect(await decide('nonsense:1#viewer@user:anne')).toBe('authority:refused')
  })

  test('ids are distinct, whatever characters they have', async () => {
    const authority = openfga()
    for (const [n] of UNUSUAL.entries())
      for (const [m, id] of UNUSUAL.entries())
        expect(
          await decisionOf(authority, query(`doc:odd${n}#viewer@user:${escaped(id)}`)),
          `${n} ${m}`,
        ).toBe(n === m ? 'allowed' : 'denied')
  })

  test('an id that equals the wildcard means only itself in AuthZEN as well', async () => {
    expect(await decisionOf(authzen(), query(`doc:public#viewer@user:*`))).toBe('denied')
    expect(await decisionOf(authzen(), query(`doc:odd2#viewer@user:${escaped('*')}`))).toBe(
      'allowed',
    )
    expect(await decisionOf(authzen(), query(`doc:odd2#viewer@user:anne`))).toBe('denied')
  })

  test('usersets, wildcards and contextual tuples are supported', async () => {
    const decide = (tuple: string, more = {}) => decisionOf(openfga(), query(tuple, more))
    expect(await decide('doc:2#viewer@group:eng#member')).toBe('allowed')
    expect(await decide('doc:2#viewer@doc:2#viewer')).toBe('allowed')
    expect(await decide('doc:public#viewer@user:*')).toBe('allowed')
    expect(await decide('doc:1#viewer@user:*')).toBe('denied')
    const contextualTuples = [query('group:eng#member@user:carl')]
    expect(await decide('doc:2#viewer@user:carl', { contextualTuples })).toBe('allowed')
    expect(await decide('doc:2#viewer@user:carl')).toBe('denied')
  })

  test('the limits of the server are those that the adapter assumes', async () => {
    const decide = (tuple: string) => decisionOf(openfga(), query(tuple))
    const long = (type: string, length: number) => `${type}:${'é'.repeat(length - type.length - 1)}`
    expect(await decide(`${long('doc', 256)}#viewer@user:anne`)).toBe('denied')
    expect(await decide(`doc:public#viewer@${long('user', 512)}`)).toBe('allowed')
    expect(await decide('group:g0#member@user:deep')).toBe('unknown:max_depth_exceeded')
    expect(await decide('group:g25#member@user:deep')).toBe('allowed')
  })

  test('an unknown store or model is an outage', async () => {
    const decide = (tenant: string) =>
      decisionOf(openfga(), query('doc:1#viewer@user:umbra', { tenant }))
    expect(await decide('lost')).toBe('authority:refused')
    expect(await decide('mixed')).toBe('authority:refused')
    const unauthorized = createOpenfgaDecisionPoint({
      url: server.url,
      ...common,
      token: 'wrong',
      stores: new Map([['', one]]),
    })
    expect(await decisionOf(unauthorized, query('doc:1#viewer@user:anne'))).toBe(
      'authority:refused',
    )
  })

  test('a deleted tuple denies from the next request on, in a hundred trials', async () => {
    const authority = openfga()
    const question = query('doc:hot#viewer@user:anne', { atLeast: 1 })
    const tuple_keys = [tuple('doc:hot', 'viewer', 'user:anne')]
    for (let trial = 0; trial < 100; trial++) {
      await server.write(one.store, { writes: { tuple_keys } })
      expect(await decisionOf(authority, question)).toBe('allowed')
      await server.write(one.store, { deletes: { tuple_keys } })
      expect(await decisionOf(authority, question)).toBe('denied')
    }
  })
})
