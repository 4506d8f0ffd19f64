import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
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

const relationOf = (json: unknown, type: string, relation: string) =>
  compileModel(json).types.get(type)?.get(relation)

describe('a compiled model contains', () => {
  test('the direct types: objects, usersets and wildcards', () => {
    const json = modelOf(
      typeOf('team', { member: direct }, { member: [user, usersetOf('team', 'member')] }),
      typeOf('document', { viewer: direct }, { viewer: [usersetOf('team', 'member'), anyUser] }),
    )
    expect(relationOf(json, 'team', 'member')?.directTypes).toEqual([
      { type: 'user', kind: 'object' },
      { type: 'team', kind: 'userset', relation: 'member' },
    ])
    expect(relationOf(json, 'document', 'viewer')).toEqual({
      userset: { kind: 'direct' },
      directTypes: [
        { type: 'team', kind: 'userset', relation: 'member' },
        { type: 'user', kind: 'wildcard' },
      ],
    })
  })

  test('every kind of userset, nested', () => {
    const json = modelOf(
      typeOf('folder', { viewer: direct }, { viewer: [user] }),
      typeOf(
        'document',
        {
          parent: direct,
          editor: direct,
          viewer: difference(
            union(direct, computed('editor'), from('viewer', 'parent')),
            intersection(direct, computed('editor')),
          ),
        },
        { parent: [{ type: 'folder' }], editor: [user], viewer: [user] },
      ),
    )
    expect(relationOf(json, 'document', 'viewer')?.userset).toEqual({
      kind: 'exclusion',
      base: {
        kind: 'union',
        of: [
          { kind: 'direct' },
          { kind: 'computed', relation: 'editor' },
          { kind: 'tuple_to_userset', tupleset: 'parent', computed: 'viewer' },
        ],
      },
      subtract: {
        kind: 'intersection',
        of: [{ kind: 'direct' }, { kind: 'computed', relation: 'editor' }],
      },
    })
    expect(relationOf(json, 'document', 'editor')?.directTypes).toHaveLength(1)
  })

  test('types without relations', () => {
    const { types } = compileModel(modelOf({ type: 'device' }, { type: 'key', metadata: null }))
    expect([...types].map(([type, relations]) => [type, relations.size])).toEqual([
      ['user', 0],
      ['device', 0],
      ['key', 0],
    ])
  })

  test('no member of the API or of modules that is irrelevant for a decision', () => {
    const plain = documents(
      { viewer: union(direct, computed('a')), a: direct },
      { viewer: [user], a: [user] },
    )
    const extended = {
      id: '01HVMMBCMGZNT3SED4Z17ECXCA',
      schema_version: '1.1',
      conditions: {},
      type_definitions: [
        {
          type: 'user',
          relations: {},
          metadata: { module: 'core', source_info: { file: 'core.fga' } },
        },
        {
          type: 'document',
          relations: {
            viewer: union(direct, { computedUserset: { object: '', relation: 'a' } }),
            a: direct,
          },
          metadata: {
            relations: {
              viewer: {
                directly_related_user_types: [{ ...user, condition: '' }],
                module: 'wiki',
                source_info: { file: 'wiki.fga' },
              },
              a: { directly_related_user_types: [{ ...user, relation: '', wildcard: null }] },
            },
            module: '',
            source_info: null,
          },
        },
      ],
    }
    expect(compileModel(extended)).toEqual(compileModel(plain))
  })

  test('relations with tuples that may form a cycle, because a check ends in cycles', () => {
    const json = modelOf(
      typeOf(
        'folder',
        { parent: direct, viewer: union(direct, from('viewer', 'parent')) },
        { parent: [{ type: 'folder' }], viewer: [user, usersetOf('folder', 'viewer')] },
      ),
    )
    expect(relationOf(json, 'folder', 'viewer')).toBeDefined()
  })

  test('a tuple to userset where only one of the parents has the relation', () => {
    const json = modelOf(
      typeOf('folder', { viewer: direct }, { viewer: [user] }),
      typeOf(
        'document',
        { parent: direct, viewer: from('viewer', 'parent') },
        { parent: [user, { type: 'folder' }] },
      ),
    )
    expect(relationOf(json, 'document', 'viewer')).toBeDefined()
  })

  test('names that have a meaning in JavaScript', () => {
    const names = ['constructor', 'toString', 'hasOwnProperty', 'valueOf']
    const json = modelOf(
      ...names.map((name) => typeOf(name, { [name]: direct }, { [name]: [{ type: name }] })),
    )
    for (const name of names) expect(relationOf(json, name, name)?.directTypes).toHaveLength(1)
    expect(compileModel(documents({})).types.get('document')?.has('constructor')).toBe(false)
  })
})
