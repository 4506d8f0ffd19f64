import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import { createRelationRule } from '../../../../src/access/relations/rule.ts'
import { Misconfigured } from '../../../../src/errors.ts'
import { relations } from '../../../../src/features/relations/index.ts'
import type { RouteDefinition } from '../../../../src/policy/definition.ts'
import { definePolicy } from '../../../../src/policy/policy.ts'
import { MODEL } from './model.ts'

const relation = { object: 'order:{params.id}', relation: 'viewer' }
const route = { method: 'GET', path: '/orders/:id', permission: 'orders:read', relation }

function mistakesOf(settings: object | undefined, ...routes: readonly object[]) {
  try {
    definePolicy({
      roles: {},
      limits: {},
      routes: routes as RouteDefinition<never>[],
      ...(settings && { relations: relations({ model: MODEL, ...settings }) }),
    })
    return []
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    return error.mistakes
  }
}

describe('a policy with relations', () => {
  test('that has only a model gets the defaults', () => {
    const policy = definePolicy({
      roles: {},
      limits: {},
      relations: relations({ model: MODEL }),
      routes: [{ method: 'GET', path: '/orders/:id', permission: 'orders:read', relation }],
    })
    expect(policy.relations).toMatchObject({
      subject: 'user:{subject}',
      issuers: undefined,
      authority: 'redis',
      maxStalenessMs: 0,
      cacheEntries: 10_000,
    })
    expect(policy.routes[0]?.relation).toMatchObject({ name: 'order#viewer', mode: 'enforce' })
  })

  test('without relations has none, and its routes require none', () => {
    expect(mistakesOf(undefined, { ...route, relation: undefined })).toEqual([])
    expect(mistakesOf(undefined, route)).toEqual([
      "GET /orders/:id: relation: requires the field relations of the policy; import { relations } from 'portcullis/relations'",
    ])
  })

  test('refuses settings without the import', () => {
    const settings = { relations: { model: MODEL } as never }
    const define = () =>
      definePolicy({ roles: {}, limits: {}, routes: [route] as never, ...settings })
    expect(define).toThrow(
      "relations: must be the result of relations(); import { relations } from 'portcullis/relations'",
    )
  })

  test.each([
    [{ model: 'portcullis.fga' }, /relations\.model: must be a model/],
    [{ model: {} }, /relations\.model: model: /],
    [{ model: { ...MODEL, schema_version: '1.0' } }, /relations\.model: model: schema 1\.0/],
    [{ maxStalenessMs: 60_001 }, /relations\.maxStalenessMs/],
    [{ maxStalenessMs: -1 }, /relations\.maxStalenessMs/],
    [{ cacheEntries: 0 }, /relations\.cacheEntries/],
    [{ authority: 'spicedb' }, /relations\.authority/],
    [
      { authority: 'openfga' },
      /relations\.authority: must be .* openfga\(\) from 'portcullis\/openfga'/,
    ],
    [{ subject: 'robot:{subject}' }, /relations\.subject: the model has no type robot/],
    [{ subject: 'user:anybody' }, /relations\.subject: must contain a placeholder/],
    [{ subject: 'user:*' }, /relations\.subject: must be one subject/],
    [{ subject: 'group:{tenant}#member' }, /relations\.subject: must be one subject/],
    [{ subject: 'user:{params.id}' }, /relations\.subject: must not depend on the path/],
    [{ subject: 'user:{sub}' }, /relations\.subject: unknown placeholder \{sub\}/],
    [{ maxStaleness: 1 }, /relations/],
  ])('relations %j are refused', (settings, why) => {
    expect(mistakesOf(settings, route).join('\n')).toMatch(why)
  })

  test.each([
    [
      { object: 'order:{params.order}' },
      /object names \{params\.order\}, which is not in the path/,
    ],
    [{ object: 'invoice:{params.id}' }, /the model has no type invoice/],
    [{ relation: 'reader' }, /the model has no relation order#reader/],
    [{ relation: 'parent' }, /no user can ever have order#parent/],
    [{ relation: '__proto__' }, /no relation order#__proto__/],
    [{ object: 'order' }, /object must be written as type:id/],
    [{ object: 'order:*' }, /object must be one object/],
    [{ object: 'group:{params.id}#member', relation: 'member' }, /object must be one object/],
    [
      { contextualTuples: [{ object: 'order:1', relation: 'owner', subject: 'group:a#member' }] },
      /contextualTuples\[0\] the model permits no group:a#member as order#owner/,
    ],
    [
      { contextualTuples: [{ object: 'order:1', relation: 'x', subject: 'user:{subject}' }] },
      /contextualTuples\[0\] the model has no relation order#x/,
    ],
    [
      { contextualTuples: [{ object: 'order:1', relation: 'owner', subject: 'user:{params.x}' }] },
      /contextualTuples\[0\] subject names \{params\.x\}/,
    ],
    [
      { contextualTuples: [{ object: 'order:1', relation: 'owner', subject: 'user:*' }] },
      /permits no user:\* as order#owner/,
    ],
    [{ contextualTuples: Array.from({ length: 21 }, () => ({})) }, /contextualTuples/],
    [{ mode: 'watch' }, /enforce/],
    [{ objekt: 'order:1' }, /objekt/],
  ])('a route that requires %j is refused', (demand, why) => {
    const mistakes = mistakesOf({}, { ...route, relation: { ...relation, ...demand } })
    expect(mistakes.join('\n')).toMatch(why)
    expect(mistakes.join('\n')).toMatch(/GET \/orders\/:id|routes\[0\]/)
  })

  test('that requires a relation on an anonymous route is refused', () => {
    const open = { ...route, permission: undefined, anonymous: true }
    expect(mistakesOf({}, open)).toEqual([
      'GET /orders/:id: relation: cannot be combined with anonymous, because anonymous callers have no relations',
    ])
  })

  test.each(['/orders/:id', '/orders/:id?', '/orders/:id{[a-z]+}', '/:id/x'])(
    'names the parameters of %s',
    (path) => expect(mistakesOf({}, { ...route, path })).toEqual([]),
  )

  test('lists all mistakes at once', () => {
    const wrong = { object: 'order:{params.a}', relation: 'reader' }
    expect(mistakesOf({}, { ...route, relation: wrong }, { ...route, path: '/x' })).toEqual([
      'GET /orders/:id: relation: object names {params.a}, which is not in the path',
      'GET /orders/:id: relation: the model has no relation order#reader; it has parent, owner, blocked, viewer, payer',
      'GET /x: relation: object names {params.id}, which is not in the path',
    ])
  })
})

test("a rule of a user's Worker is checked against the model as well", () => {
  const model = compileModel(MODEL)
  expect(createRelationRule({ model, ...relation }).name).toBe('order#viewer')
  expect(() => createRelationRule({ model, ...relation, relation: 'reader' })).toThrow(TypeError)
  expect(() => createRelationRule({ model, ...relation, subject: 'group:{subject}' })).toThrow(
    /no group can ever have/,
  )
})
