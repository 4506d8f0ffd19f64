import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import type { Userset } from '../../../../src/access/relations/model.ts'
import {
  mistakeOfRelation,
  mistakeOfSubject,
  mistakeOfSyntax,
  mistakeOfTuple,
} from '../../../../src/access/relations/permitted.ts'
import {
  cursorOf,
  parseTuple,
  type RelationTuple,
  tupleOfCursor,
} from '../../../../src/access/relations/tuple.ts'
import {
  idsInChange,
  subjectOfId,
  tupleChange,
} from '../../../../src/access/relations/tuple-change.ts'
import { expanded, relationsIn } from '../../../../src/features/relations/expand.ts'
import { MODEL } from '../../../features/operators/relation-model.ts'

const model = compileModel(MODEL)
const tuple = (text: string) => parseTuple(text) as RelationTuple

describe('a tuple may be written', () => {
  test.each([
    'order:1#owner@user:a',
    'order:1#viewer@user:*',
    'order:1#viewer@team:t#member',
    'team:t#member@team:u#member',
    'order:1#parent@folder:f',
    'order:a@b#owner@user:c@d',
  ])('if the model permits it: %s', (text) => {
    expect(mistakeOfTuple(model, tuple(text))).toBeUndefined()
  })

  test.each([
    ['folder:1#owner@user:a', 'relation'],
    ['user:1#owner@user:a', 'relation'],
    ['order:1#can_edit@user:a', 'relation'],
    ['order:1#owner@user:*', 'subject'],
    ['order:1#owner@user:a#owner', 'subject'],
    ['order:1#viewer@team:*', 'subject'],
    ['order:1#viewer@team:t', 'subject'],
    ['order:1#viewer@order:1#viewer', 'subject'],
    ['order:1#constructor@user:a', 'relation'],
    ['constructor:1#owner@user:a', 'object'],
  ])('and is refused otherwise: %s', (text, part) => {
    expect(mistakeOfTuple(model, tuple(text))?.part).toBe(part)
    // It may have been permitted before, so it must be possible to delete it.
    expect(mistakeOfSyntax(tuple(text))).toBeUndefined()
  })

  test('if every part has a valid form', () => {
    const good = tuple('order:1#owner@user:a')
    for (const [part, text] of [
      ['object', 'order:*'],
      ['relation', 'owner!'],
      ['subject', 'user'],
    ] as const) {
      const wrong = { ...good, [part]: text }
      expect(mistakeOfSyntax(wrong)?.part).toBe(part)
      expect(mistakeOfTuple(model, wrong)?.part).toBe(part)
    }
  })
})

test('a query may use any defined relation, whether or not it has tuples', () => {
  const of = (object: string, relation: string) => mistakeOfRelation(model, { object, relation })
  expect(of('order:1', 'can_edit')).toBeUndefined()
  expect(of('order:*', 'can_edit')?.part).toBe('object')
  expect(of('user:1', 'can_edit')?.part).toBe('relation')
  expect(mistakeOfSubject(model, 'order:1#can_edit')).toBeUndefined()
  expect(mistakeOfSubject(model, 'team:*')).toBeUndefined()
  expect(mistakeOfSubject(model, 'order:1#gone')?.part).toBe('subject')
})

test('an expansion reads the tuples of each relation once', () => {
  const computed: Userset = { kind: 'computed', relation: 'x' }
  const from: Userset = { kind: 'tuple_to_userset', tupleset: 'parent', computed: 'viewer' }
  const userset: Userset = {
    kind: 'exclusion',
    base: { kind: 'intersection', of: [{ kind: 'direct' }, from, computed] },
    subtract: { kind: 'union', of: [from, { kind: 'direct' }] },
  }
  expect(relationsIn(userset, 'viewer')).toEqual(['viewer', 'parent'])
})

test('an expansion omits usersets that the model does not permit, and dead ends', () => {
  const userset = model.types.get('order')?.get('viewer')?.userset as Userset
  const page = (...subjects: string[]) => ({ subjects, hasMore: false })
  const named = new Map([
    ['viewer', page('user:a', 'robot:a', 'folder:f')],
    ['parent', page('folder:f', 'team:t', 'folder:g#viewer', 'folder:*')],
  ])
  const tree = expanded(userset, { model, object: 'order:1', relation: 'viewer', named })
  const text = JSON.stringify(tree)
  expect(text).toContain('"users":["user:a"]')
  expect(text).toContain('"computed":[{"userset":"folder:f#viewer"}]')
})

describe('a cursor', () => {
  test('is one text for one tuple', () => {
    const one = tuple('order:ü@1#viewer@team:%23#member')
    expect(tupleOfCursor(cursorOf(one))).toEqual(one)
    expect(cursorOf(one)).toMatch(/^[\w-]+$/)
  })

  test.each([
    '',
    '!',
    'b3JkZXI',
    `${cursorOf(tuple('a:1#b@c:2'))}=`,
    `${cursorOf(tuple('a:1#b@c:2'))} `,
  ])('%j is refused', (text) => {
    expect(tupleOfCursor(text)).toBeUndefined()
  })

  test('with invalid UTF-8 is refused', () => {
    expect(tupleOfCursor(Buffer.from('a:\xff#b@c:1', 'latin1').toString('base64url'))).toBe(
      undefined,
    )
  })
})

describe('the audit text of a change', () => {
  test('is one text from which every tuple can be parsed', () => {
    const writes = [tuple('order:1#viewer@user:a'), tuple('order:1#viewer@user:*')]
    const deletes = [tuple('team:t#member@user:%20')]
    expect(tupleChange(null, { writes, deletes })).toBe(
      '+order:1#viewer@user:a +order:1#viewer@user:* -team:t#member@user:%20',
    )
    expect(tupleChange('a b', { writes: [], deletes })).toBe('tenant=a%20b -team:t#member@user:%20')
  })

  test('contains ids, complete and in parts', () => {
    const text = 'tenant=alice +order:7#viewer@user:acme|auth0|bob%20b#friend -a:x@y#b@c:*'
    expect([...idsInChange(text)].sort()).toEqual(
      [
        '*',
        '7',
        'acme',
        'acme|auth0',
        'acme|auth0|bob%20b',
        'auth0',
        'auth0|bob%20b',
        'bob%20b',
        'x@y',
      ].sort(),
    )
    expect(subjectOfId('bob%20b')).toBe('bob b')
    expect(subjectOfId('*')).toBeUndefined()
    expect(subjectOfId('%zz')).toBeUndefined()
  })

  test('is scanned in bounded time, whatever the ids are', () => {
    const id = 'a|'.repeat(250)
    const text = Array.from({ length: 40 }, (_, n) => `+order:${n}#viewer@user:${id}`).join(' ')
    expect(idsInChange(text).size).toBeLessThan(40 + 30)
  })
})
