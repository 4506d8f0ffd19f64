/** The suggestions of `portcullis policy check` for names that do not exist. */
import { definePolicy, group, type PolicyDefinition } from 'portcullis'
import { override } from 'portcullis/openapi-routes'
import { origins } from 'portcullis/origins'
import { plans } from 'portcullis/plans'
import { relations } from 'portcullis/relations'
import { describe, expect, test } from 'vitest'
import { lint } from '../../../cli/policy/lints.ts'
import { findingsOf, withSuggestions } from '../../../cli/policy/mistakes.ts'
import { Misconfigured } from '../../../src/errors.ts'
import { environmentSchema } from '../../../src/features/environment.ts'
import { issuesOf, mistakeOf } from '../../../src/validators/configuration.ts'

const model = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'order',
      relations: { viewer: { this: {} } },
      metadata: { relations: { viewer: { directly_related_user_types: [{ type: 'user' }] } } },
    },
  ],
}
type Definition = PolicyDefinition<string, string>
const route = { method: 'GET', path: '/orders/:id', permission: 'orders:read' } as const

/** Defines a policy with one route, and returns each mistake with its suggestion. */
function suggestionsFor(fields: object, parts: () => Partial<Definition> = () => ({})): string[] {
  const defined: Partial<Definition> = { limits: { standard: '10/min' } }
  try {
    definePolicy({
      roles: { reader: ['orders:read'] },
      ...defined,
      ...parts(),
      routes: [{ ...route, ...fields }],
    } as Definition)
    return []
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    return findingsOf(error.found).map(({ message, suggestion }) => {
      return suggestion === undefined ? message : `${message} | ${suggestion}`
    })
  }
}

const ofRelations = () => ({ relations: relations({ model, issuers: ['https://idp.test'] }) })
const relation = { object: 'order:{params.id}', relation: 'viewer' }

describe('a name that does not exist, but resembles one, is suggested:', () => {
  test.each<[what: string, fields: object, parts: (() => object) | undefined, expected: string]>([
    [
      'a limit',
      { limits: ['standart'] },
      undefined,
      'unknown limit standart | did you mean "standard"?',
    ],
    [
      'a field',
      { limit: ['standard'] },
      undefined,
      'Unrecognized key: "limit" | did you mean "limits"?',
    ],
    [
      'a field of an issuer in the policy',
      {},
      () => ({ issuers: [{ issuer: 'https://idp.test', audiences: 'a' }] }),
      'issuers[0]: Unrecognized key: "audiences" | did you mean "audience"?',
    ],
    [
      'an origin',
      { origin: 'order' },
      () => ({ origins: origins({ orders: { url: 'https://orders.test' } }) }),
      'origin: unknown origin "order"; did you mean "orders"?',
    ],
    [
      'a parameter of a rewrite',
      { rewrite: '/x/:ib' },
      () => ({ origins: origins({ orders: { url: 'https://orders.test' } }) }),
      'the path has no parameter :ib | did you mean "id"?',
    ],
    [
      'a relation',
      { relation: { ...relation, relation: 'viever' } },
      ofRelations,
      'the model has no relation order#viever; it has viewer | did you mean "viewer"?',
    ],
    [
      'a type of objects',
      { relation: { ...relation, object: 'oder:{params.id}' } },
      ofRelations,
      'the model has no type oder; it has user, order | did you mean "order"?',
    ],
    [
      'a parameter of an object',
      { relation: { ...relation, object: 'order:{params.ib}' } },
      ofRelations,
      'object names {params.ib}, which is not in the path | did you mean "id"?',
    ],
    [
      'a type of subjects',
      {},
      () => ({ relations: relations({ model, subject: 'usr:{subject}' }) }),
      'the model has no type usr; it has user, order | did you mean "user"?',
    ],
    [
      'a plan',
      {},
      () => ({
        limits: {
          plan: plans({ plans: { free: '1/min', pro: '9/min' }, default: 'fre' as 'free' }),
        },
      }),
      'unknown plan fre; the plans are free, pro | did you mean "free"?',
    ],
    [
      'a route of override()',
      {},
      () => {
        override([{ method: 'GET', path: '/orders' }] as never, { 'GET /order': null } as never)
        return {}
      },
      'there is no route GET /order; did you mean "GET /orders"?',
    ],
  ])('%s', (_, fields, parts, expected) => {
    expect(suggestionsFor(fields, parts).join('\n')).toContain(expected)
  })

  test('a field of an issuer in ISSUERS, where the start lists its mistakes', () => {
    const wrong = JSON.stringify([{ issuer: 'https://idp.test', audience: 'a', audiences: 'a' }])
    const variables = {
      PUBLIC_URL: 'https://api.test',
      ORIGIN_URL: 'https://origin.test',
      UPSTASH_REDIS_REST_URL: 'https://redis.test',
      UPSTASH_REDIS_REST_TOKEN: 'a',
      ISSUERS: wrong,
    }
    const mistakes = issuesOf(environmentSchema, variables).map((issue) => mistakeOf(issue))
    const { message } = new Misconfigured('The environment', mistakes)
    expect(withSuggestions(message, mistakes)).toBe(
      'The environment is not valid:\n' +
        '  - ISSUERS[0]: Unrecognized key: "audiences"; did you mean "audience"?',
    )
  })

  test('a permission, of a route and of a role', () => {
    const policy = definePolicy({
      roles: { reader: ['orders:raed'], other: ['notes:*'] },
      limits: {},
      routes: group({ permission: 'orders:read' }, [{ method: 'GET', path: '/orders' }]),
    })
    const suggestions = lint(policy).flatMap(({ rule, path, suggestion }) =>
      /permission|role/.test(rule) ? [[rule, path[1], suggestion]] : [],
    )
    expect(suggestions).toEqual([
      ['unused-role', 'reader', 'did you mean "orders:read"?'],
      ['unused-role', 'other', 'correct its permissions, or remove the role'],
      ['ungranted-permission', 0, 'did you mean "orders:raed"?'],
    ])
  })
})
