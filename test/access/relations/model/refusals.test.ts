import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import { ModelInvalid } from '../../../../src/access/relations/model.ts'
import {
  anyUser,
  computed,
  difference,
  direct,
  documents,
  from,
  intersection,
  modelOf,
  typeOf,
  union,
  user,
  usersetOf,
} from './json.ts'

function mistakesOf(json: unknown): readonly string[] {
  try {
    compileModel(json)
    return []
  } catch (error) {
    if (!(error instanceof ModelInvalid)) throw error
    return error.mistakes
  }
}

const NAME =
  'is not a name: a letter or _, then up to 62 letters, digits, _ and -; neither self nor this'

/** Nests usersets to the given depth. */
const nested = (levels: number): object =>
  levels === 0 ? direct : union(nested(levels - 1), direct)

describe('a model is refused', () => {
  test.each<[string, unknown, readonly string[]]>([
    ['that is not an object', null, ['model: Invalid input: expected object, received null']],
    [
      'without required members',
      {},
      [
        'model: schema_version: Invalid input: expected string, received undefined',
        'model: type_definitions: Invalid input: expected array, received undefined',
      ],
    ],
    ['without types', { schema_version: '1.1', type_definitions: [] }, ['model: has no types']],
    [
      'of another schema version',
      { schema_version: '1.2', type_definitions: [user] },
      ['model: schema 1.2 is not supported; use 1.1'],
    ],
    [
      'with unknown members',
      { ...modelOf(), functions: [] },
      ['model: Unrecognized key: "functions"'],
    ],
    [
      'with conditions',
      {
        ...documents({ viewer: direct }, { viewer: [{ ...user, condition: 'late' }] }),
        conditions: { late: { name: 'late', expression: 'true' } },
      },
      [
        'model: condition late: conditions are not supported',
        'document#viewer: user with late: conditions are not supported',
      ],
    ],
    ['with a type twice', modelOf(user), ['user: this type is defined twice']],
    [
      'with invalid names',
      modelOf(
        ...[typeOf(''), typeOf('this'), typeOf('a/b'), typeOf('a'.repeat(64))],
        typeOf(
          'document',
          { self: direct, '': direct, 'a b': direct, ä: direct },
          { self: [user], '': [user], 'a b': [user], ä: [user] },
        ),
      ),
      [
        ...['""', 'this', 'a/b', 'a'.repeat(64)],
        ...['document#self', 'document#', 'document#a b', 'document#ä'],
      ].map((at) => `${at}: ${NAME}`),
    ],
  ])('%s', (_what, json, mistakes) => {
    expect(mistakesOf(json)).toEqual(mistakes)
  })
})

describe('a userset is refused', () => {
  test.each<[string, unknown, readonly string[]]>([
    [
      'of an unknown kind',
      { everybody: {} },
      ['unknown kind of userset: everybody', 'must be a userset of exactly one kind'],
    ],
    ['without a kind', {}, ['must be a userset of exactly one kind']],
    ['of two kinds', { ...direct, ...computed('b') }, ['must be a userset of exactly one kind']],
    [
      'without a kind, deeply nested',
      union(direct, difference(direct, {})),
      ['union.child.1.difference.subtract: must be a userset of exactly one kind'],
    ],
    [
      'with a union of one',
      { union: { child: [direct] } },
      ['union.child: must contain at least two usersets'],
    ],
    [
      'with an intersection of none',
      { intersection: { child: [] } },
      ['intersection.child: must contain at least two usersets'],
    ],
    [
      'with an exclusion without a subtracted part',
      { difference: { base: direct } },
      ['difference.subtract: Invalid input: expected object, received undefined'],
    ],
    [
      'of another object',
      { computedUserset: { object: 'document:1', relation: 'b' } },
      ['computedUserset.object: must be empty: it is always the object of the check'],
    ],
    ['with an undefined relation', computed('editor'), ['there is no relation editor']],
    [
      'with names that every JavaScript object inherits',
      union(computed('toString'), from('valueOf', 'constructor')),
      ['there is no relation toString', 'there is no relation constructor'],
    ],
    ['from an undefined relation', from('b', 'parent'), ['there is no relation parent']],
    [
      'from a relation with objects that do not have the computed relation',
      from('viewer', 'b'),
      ['viewer from b: no type that b names has a relation viewer'],
    ],
    [
      'from a wildcard or a userset',
      union(from('c', 'everybody'), from('c', 'team')),
      [
        'c from everybody: everybody must not name user:*, but objects',
        'c from everybody: no type that everybody names has a relation c',
        'c from team: team must not name document#c, but objects',
      ],
    ],
    [
      'from a relation that is not defined by tuples alone',
      from('b', 'c'),
      ['b from c: c must name types and nothing else'],
    ],
    [
      'of a direct relation without types',
      direct,
      ['can be assigned directly, but has no direct types'],
    ],
    ['that is nested too deeply', nested(11), ['is nested deeper than 10 levels']],
  ])('%s', (_what, userset, mistakes) => {
    const json = documents(
      { a: userset, b: direct, c: union(direct, computed('b')), everybody: direct, team: direct },
      {
        b: [user],
        c: [{ type: 'document' }],
        everybody: [anyUser],
        team: [usersetOf('document', 'c')],
      },
    )
    expect(mistakesOf(json)).toEqual(mistakes.map((why) => `document#a: ${why}`))
  })
})

describe('direct types are refused', () => {
  test.each<[string, object, readonly unknown[], readonly string[]]>([
    ['that are undefined', direct, [{ type: 'users' }], ['users: unknown type users']],
    [
      'with an undefined relation',
      direct,
      [usersetOf('document', 'owner'), usersetOf('user', 'constructor')],
      [
        'document#owner: document has no relation owner',
        'user#constructor: user has no relation constructor',
      ],
    ],
    [
      'twice',
      direct,
      [user, anyUser, user, anyUser],
      ['user is listed twice', 'user:* is listed twice'],
    ],
    [
      'with both a relation and a wildcard',
      direct,
      [user, { ...anyUser, relation: 'a' }],
      ['user: cannot have both a relation and a wildcard'],
    ],
    [
      'on a relation without tuples',
      computed('b'),
      [user],
      ['has direct types, but cannot be assigned directly'],
    ],
    [
      'that lead only to themselves',
      direct,
      [usersetOf('document', 'a')],
      ['no subject can ever have it'],
    ],
  ])('%s', (_what, userset, directTypes, mistakes) => {
    const json = documents({ a: userset, b: direct }, { a: directTypes, b: [user] })
    expect(mistakesOf(json)).toEqual(mistakes.map((why) => `document#a: ${why}`))
  })

  test('of an undefined relation', () => {
    expect(mistakesOf(documents({}, { owner: [user] }))).toEqual([
      'document#owner: has metadata, but is not defined',
    ])
  })
})

describe('relations are refused that', () => {
  test('refer to themselves without a tuple in between, even if a tuple could end the cycle', () => {
    expect(mistakesOf(documents({ a: computed('a') }))).toEqual([
      'document#a: depends on itself: a > a',
    ])
    const json = documents(
      { a: union(direct, computed('b')), b: computed('c'), c: difference(direct, computed('a')) },
      { a: [user], c: [user] },
    )
    expect(mistakesOf(json)).toEqual(['document#a: depends on itself: a > b > c > a'])
  })

  test('no subject can ever have', () => {
    const json = modelOf(
      typeOf(
        'folder',
        { parent: direct, viewer: from('viewer', 'parent') },
        { parent: [{ type: 'folder' }] },
      ),
      typeOf(
        'document',
        {
          owner: direct,
          viewer: intersection(computed('owner'), computed('unreachable')),
          unreachable: difference(computed('stuck'), computed('owner')),
          stuck: direct,
          fine: union(computed('stuck'), computed('owner')),
        },
        { owner: [user], stuck: [usersetOf('document', 'viewer')] },
      ),
    )
    expect(mistakesOf(json)).toEqual(
      ['folder#viewer', 'document#viewer', 'document#unreachable', 'document#stuck'].map(
        (at) => `${at}: no subject can ever have it`,
      ),
    )
  })
})

test('an exclusion that could exclude no subject, or only through itself, is refused', () => {
  const json = documents(
    {
      owner: direct,
      viewer: difference(computed('owner'), direct),
      editor: difference(computed('owner'), computed('stuck')),
      stuck: direct,
      reader: computed('viewer'),
    },
    {
      owner: [user],
      viewer: [usersetOf('document', 'reader')],
      stuck: [usersetOf('document', 'stuck')],
    },
  )
  expect(mistakesOf(json)).toEqual([
    'document#viewer: no subject can ever be excluded from it',
    'document#editor: no subject can ever be excluded from it',
    'document#stuck: no subject can ever have it',
  ])
})

test('all mistakes are reported at once, in the message as well', () => {
  const json = modelOf(
    typeOf('folder', { viewer: computed('owner') }),
    typeOf(
      'document',
      { viewer: direct },
      { viewer: [{ type: 'group' }, usersetOf('folder', 'x')] },
    ),
  )
  const mistakes = [
    'folder#viewer: there is no relation owner',
    'document#viewer: group: unknown type group',
    'document#viewer: folder#x: folder has no relation x',
  ]
  expect(mistakesOf(json)).toEqual(mistakes)
  expect(() => compileModel(json)).toThrow(
    `The authorization model is not valid:\n${mistakes.map((mistake) => `  - ${mistake}`).join('\n')}`,
  )
})
