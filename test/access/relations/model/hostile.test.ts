import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import { ModelInvalid } from '../../../../src/access/relations/model.ts'
import { computed, direct, documents, modelOf, typeOf, union, user } from './json.ts'

const refused = (why: string) => `The authorization model is not valid:\n  - model: ${why}`

test('nesting of any depth is refused before the model is read', () => {
  let userset: object = direct
  for (let level = 0; level < 10_000; level++) userset = union(userset, direct)
  expect(() => compileModel(documents({ a: userset }))).toThrow(refused('is nested too deeply'))
  const circle: Record<string, unknown> = {}
  circle.type_definitions = [circle]
  expect(() => compileModel(circle)).toThrow(refused('is nested too deeply'))
})

test.each<[string, () => unknown]>([
  ['types', () => ({ ...modelOf(), type_definitions: Array<unknown>(1_000_000).fill(user) })],
  [
    'relations',
    () =>
      documents(Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`r${n}`, direct]))),
  ],
  ['one union', () => documents({ a: union(...Array<unknown>(100_000).fill(direct)) })],
  ['conditions', () => ({ ...modelOf(), conditions: Array<unknown>(100_000).fill({}) })],
])('a model of too many %s is refused before it is read', (_what, json) => {
  expect(() => compileModel(json())).toThrow(refused('is too large'))
})

test('the size of a model is bounded: 100 types, 2,000 usersets and direct types', () => {
  const types = (count: number) =>
    modelOf(...Array.from({ length: count - 1 }, (_, n) => typeOf(`type${n}`)))
  expect(compileModel(types(100)).types.size).toBe(100)
  expect(() => compileModel(types(101))).toThrow(refused('has more than 100 types'))

  const parts = (count: number) =>
    documents(
      { a: direct, b: union(...Array<unknown>(count - 3).fill(computed('a'))) },
      { a: [user] },
    )
  expect(compileModel(parts(2_000)).types.size).toBe(2)
  expect(() => compileModel(parts(2_001))).toThrow(
    refused('has more than 2000 usersets and direct types'),
  )
})

test('the longest chain of computed relations is followed to its end', () => {
  const chain = (last: object) =>
    Object.fromEntries(
      Array.from({ length: 1_990 }, (_, n) => [
        `r${n}`,
        n === 1_989 ? last : computed(`r${n + 1}`),
      ]),
    )
  expect(compileModel(documents(chain(direct), { r1989: [user] })).types.size).toBe(2)
  expect(() => compileModel(documents(chain(computed('r0'))))).toThrow('depends on itself')
})

test.each([
  '{"schema_version":"1.1","type_definitions":[{"type":"d","relations":{"__proto__":{"this":{}}}}]}',
  '{"schema_version":"1.1","type_definitions":[{"type":"d","__proto__":{"relations":{"a":{"this":{}}}}}]}',
  '{"schema_version":"1.1","type_definitions":[{"type":"user"}],"__proto__":{"conditions":{}}}',
])('a name that readers drop silently is refused: %s', (text) => {
  expect(() => compileModel(JSON.parse(text))).toThrow(refused('__proto__ cannot be a name'))
})

test('inherited properties are not read', () => {
  const inherited = Object.create({ schema_version: '1.1', type_definitions: [user] }) as object
  expect(() => compileModel(inherited)).toThrow(refused('is not JSON'))
  expect(() => compileModel(new Map())).toThrow(refused('is not JSON'))
})

test('any JSON is compiled or refused, without any other error', () => {
  const names = fc.constantFrom(
    'user',
    'doc',
    'a',
    'b',
    '',
    'this',
    'constructor',
    '__proto__',
    'é',
  )
  const { userset } = fc.letrec((tie) => ({
    userset: fc.oneof(
      { maxDepth: 4 },
      fc.constant(direct),
      fc.record({ computedUserset: fc.record({ relation: names }) }),
      fc.record({
        tupleToUserset: fc.record({
          tupleset: fc.record({ relation: names }),
          computedUserset: fc.record({ relation: names }),
        }),
      }),
      fc.record({ union: fc.record({ child: fc.array(tie('userset'), { maxLength: 3 }) }) }),
      fc.record({ intersection: fc.record({ child: fc.array(tie('userset'), { maxLength: 3 }) }) }),
      fc.record({ difference: fc.record({ base: tie('userset'), subtract: tie('userset') }) }),
      fc.jsonValue(),
    ),
  }))
  const directType = fc.record(
    { type: names, relation: names, wildcard: fc.constant({}), condition: names },
    { requiredKeys: ['type'] },
  )
  const type = fc.record({
    type: names,
    relations: fc.dictionary(names, userset, { maxKeys: 4 }),
    metadata: fc.record({
      relations: fc.dictionary(
        names,
        fc.record({ directly_related_user_types: fc.array(directType, { maxLength: 3 }) }),
        { maxKeys: 4 },
      ),
    }),
  })
  const model = fc.record({
    schema_version: fc.constantFrom('1.1', '1.0'),
    type_definitions: fc.array(type, { maxLength: 4 }),
  })
  fc.assert(
    fc.property(fc.oneof(model, fc.jsonValue(), fc.anything()), (json) => {
      try {
        expect(compileModel(json).types.size).toBeGreaterThan(0)
      } catch (error) {
        expect(error).toBeInstanceOf(ModelInvalid)
        expect((error as ModelInvalid).mistakes.length).toBeGreaterThan(0)
      }
    }),
    { numRuns: 2_000 },
  )
})
