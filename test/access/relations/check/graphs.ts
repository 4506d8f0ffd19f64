/** Random models, tuples and queries: small, dense, and with every feature of a model. */
import fc from 'fast-check'
import type { RelationQuery } from '../../../../src/access/relations/decision-point.ts'
import type {
  DirectType,
  RelationDefinition,
  RelationModel,
  Userset,
} from '../../../../src/access/relations/model.ts'
import type { RelationTuple } from '../../../../src/access/relations/tuple.ts'

export interface Graph {
  readonly model: RelationModel
  readonly tuples: readonly RelationTuple[]
  readonly queries: readonly RelationQuery[]
  readonly maxDepth: number
  readonly maxWork: number
}

/** The same graphs in every run. */
export const SEED = 20_261_122

/** Types without relations and with relations. */
const LEAVES = ['user', 'robot']
const TYPES = ['group', 'doc']
const RELATIONS = ['a', 'b', 'c']
const IDS = ['1', '2']
/** Relations with tuples that name objects to visit. */
const TUPLESETS = ['parent', 'home']

const objects = fc
  .tuple(fc.constantFrom(...TYPES), fc.constantFrom(...IDS))
  .map(([type, id]) => `${type}:${id}`)
const leaves = fc.tuple(fc.constantFrom(...LEAVES), fc.constantFrom(...IDS))
const relations = fc.constantFrom(...RELATIONS)

const directType: fc.Arbitrary<DirectType> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constantFrom(...LEAVES), kind: fc.constant('object') }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constantFrom(...LEAVES), kind: fc.constant('wildcard') }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constantFrom(...TYPES), kind: fc.constant('object') }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constantFrom(...TYPES),
      kind: fc.constant('userset'),
      relation: relations,
    }),
  },
)

const { userset } = fc.letrec<{ userset: Userset }>((tie) => {
  const parts = fc.array(tie('userset'), { minLength: 2, maxLength: 3 })
  return {
    userset: fc.oneof(
      { maxDepth: 3, depthIdentifier: 'userset' },
      { weight: 4, arbitrary: fc.constant({ kind: 'direct' }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('computed'), relation: relations }) },
      {
        weight: 3,
        arbitrary: fc.record({
          kind: fc.constant('tuple_to_userset'),
          tupleset: fc.constantFrom(...TUPLESETS),
          computed: relations,
        }),
      },
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('union'), of: parts }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('intersection'), of: parts }) },
      {
        weight: 5,
        arbitrary: fc.record({
          kind: fc.constant('exclusion'),
          base: tie('userset'),
          subtract: tie('userset'),
        }),
      },
    ),
  }
})

/** Definitions as groups have them: tuples, and at most one other relation. */
const plain: fc.Arbitrary<Userset> = fc
  .tuple(fc.boolean(), relations)
  .map(([isUnion, relation]) =>
    isUnion
      ? { kind: 'union', of: [{ kind: 'direct' }, { kind: 'computed', relation }] }
      : { kind: 'direct' },
  )

const definition: fc.Arbitrary<RelationDefinition> = fc.record({
  userset: fc.oneof({ weight: 2, arbitrary: userset }, { weight: 1, arbitrary: plain }),
  directTypes: fc
    .array(directType, { minLength: 1, maxLength: 4 })
    .map((types): DirectType[] => [{ type: 'user', kind: 'object' }, ...types]),
})

/** Some types do not have all relations, and tuplesets refer to several types. */
const models: fc.Arbitrary<RelationModel> = fc
  .tuple(
    fc.array(fc.tuple(fc.constantFrom(...TYPES), relations, definition), {
      minLength: 6,
      maxLength: 12,
    }),
    fc.array(fc.constantFrom(...TYPES), { minLength: 1, maxLength: 3 }),
    fc.array(fc.constantFrom(...TYPES), { minLength: 1, maxLength: 3 }),
  )
  .map(([defined, parents, homes]) => {
    const tupleset = (types: readonly string[]): RelationDefinition => ({
      userset: { kind: 'direct' },
      directTypes: types.map((type) => ({ type, kind: 'object' })),
    })
    const relationsOf = (type: string) =>
      new Map([
        ['parent', tupleset(parents)],
        ['home', tupleset(homes)],
        ...defined.flatMap(([of, relation, made]) =>
          of === type ? [[relation, made] as const] : [],
        ),
      ])
    return {
      types: new Map([
        ...LEAVES.map((type) => [type, new Map()] as const),
        ...TYPES.map((type) => [type, relationsOf(type)] as const),
      ]),
    }
  })

const subjects = fc.oneof(
  { weight: 8, arbitrary: leaves.map(([type, id]) => `${type}:${id}`) },
  { weight: 1, arbitrary: fc.constantFrom(...LEAVES).map((type) => `${type}:*`) },
  { weight: 3, arbitrary: fc.tuple(objects, relations).map(([at, name]) => `${at}#${name}`) },
  { weight: 1, arbitrary: objects },
)

/** A tuple that the model may not permit. */
const anyTuple: fc.Arbitrary<RelationTuple> = fc.oneof(
  fc.record({ object: objects, relation: relations, subject: subjects }),
  fc.record({
    object: objects,
    relation: fc.constantFrom(...TUPLESETS),
    subject: fc.oneof({ weight: 3, arbitrary: objects }, subjects),
  }),
)

/** A tuple that the model permits. */
function tupleOf({ types }: RelationModel): fc.Arbitrary<RelationTuple> {
  const places = [...types].flatMap(([type, defined]) =>
    [...defined].flatMap(([relation, { directTypes }]) =>
      directTypes.map((direct) => ({ type, relation, direct })),
    ),
  )
  return fc
    .tuple(fc.constantFrom(...places), fc.constantFrom(...IDS), fc.constantFrom(...IDS))
    .map(([{ type, relation, direct }, id, other]) => ({
      object: `${type}:${id}`,
      relation,
      subject: subjectOf(direct, other),
    }))
}

function subjectOf(direct: DirectType, id: string): string {
  if (direct.kind === 'wildcard') return `${direct.type}:*`
  return direct.kind === 'object'
    ? `${direct.type}:${id}`
    : `${direct.type}:${id}#${direct.relation}`
}

const queryWith = (tuple: fc.Arbitrary<RelationTuple>): fc.Arbitrary<RelationQuery> =>
  fc.record({
    tenant: fc.constant(null),
    object: objects,
    relation: relations,
    subject: fc.oneof({ weight: 2, arbitrary: fc.constantFrom('user:1', 'user:2') }, subjects),
    contextualTuples: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(tuple, { maxLength: 4 }) },
    ),
  })

export const graphs = (queries: number): fc.Arbitrary<Graph> =>
  models.chain((model) => {
    const tuple = fc.oneof({ weight: 4, arbitrary: tupleOf(model) }, anyTuple)
    const query = queryWith(tuple)
    return fc.record({
      model: fc.constant(model),
      tuples: fc.array(tuple, { minLength: 5, maxLength: 40, size: 'max' }),
      queries: fc.array(query, { minLength: queries, maxLength: queries }),
      maxDepth: fc.oneof(fc.constant(25), fc.integer({ min: 0, max: 4 })),
      maxWork: fc.oneof(
        { weight: 4, arbitrary: fc.constant(2_000) },
        { weight: 1, arbitrary: fc.integer({ min: 0, max: 40 }) },
      ),
    })
  })

const queryFor = (object: string, relation: string, subject: string): RelationQuery => ({
  tenant: null,
  object,
  relation,
  subject,
  contextualTuples: [],
})

/**
 * `all` is `some` and `same`, which refer to each other; but `some` also holds through a parent,
 * which is visited last. So `same` is denied first, as a part of `some`, and allowed once `some`
 * holds.
 */
export const REVIVED: Graph = {
  model: {
    types: new Map([
      ['user', new Map()],
      [
        'group',
        new Map<string, RelationDefinition>([
          [
            'parent',
            { userset: { kind: 'direct' }, directTypes: [{ type: 'group', kind: 'object' }] },
          ],
          ['a', { userset: { kind: 'direct' }, directTypes: [{ type: 'user', kind: 'object' }] }],
          ['same', { userset: { kind: 'computed', relation: 'some' }, directTypes: [] }],
          [
            'some',
            {
              userset: {
                kind: 'union',
                of: [
                  { kind: 'computed', relation: 'same' },
                  { kind: 'tuple_to_userset', tupleset: 'parent', computed: 'a' },
                ],
              },
              directTypes: [],
            },
          ],
          [
            'all',
            {
              userset: {
                kind: 'intersection',
                of: [
                  { kind: 'computed', relation: 'some' },
                  { kind: 'computed', relation: 'same' },
                ],
              },
              directTypes: [],
            },
          ],
        ]),
      ],
    ]),
  },
  tuples: [
    { object: 'group:1', relation: 'parent', subject: 'group:2' },
    { object: 'group:2', relation: 'a', subject: 'user:1' },
  ],
  queries: [queryFor('group:1', 'all', 'user:1'), queryFor('group:1', 'all', 'user:2')],
  maxDepth: 25,
  maxWork: 2_000,
}

const DIRECT = (type: string): RelationDefinition => ({
  userset: { kind: 'direct' },
  directTypes: [{ type, kind: 'object' }],
})

/**
 * A group has a parent of a type that the model does not permit: such a tuple may be older than the model. An exclusion
 * is not in the index of subjects, so the check visits parents.
 */
export const FOREIGN_PARENT: Graph = {
  model: {
    types: new Map([
      ['user', new Map()],
      ['doc', new Map([['b', DIRECT('user')]])],
      [
        'group',
        new Map<string, RelationDefinition>([
          ['parent', DIRECT('group')],
          [
            'a',
            {
              userset: { kind: 'tuple_to_userset', tupleset: 'parent', computed: 'b' },
              directTypes: [],
            },
          ],
          [
            'b',
            {
              userset: {
                kind: 'exclusion',
                base: { kind: 'direct' },
                subtract: { kind: 'computed', relation: 'a' },
              },
              directTypes: [{ type: 'user', kind: 'object' }],
            },
          ],
        ]),
      ],
    ]),
  },
  tuples: [
    { object: 'group:1', relation: 'parent', subject: 'doc:1' },
    { object: 'doc:1', relation: 'b', subject: 'user:1' },
  ],
  queries: [queryFor('group:1', 'a', 'user:1'), queryFor('doc:1', 'b', 'user:1')],
  maxDepth: 25,
  maxWork: 2_000,
}

/**
 * Groups: a robot may only lead one, one contains everybody, leaders are members, and one user is
 * in many groups.
 */
export const GROUPS: Graph = {
  model: {
    types: new Map([
      ['user', new Map()],
      ['robot', new Map()],
      [
        'group',
        new Map<string, RelationDefinition>([
          [
            'lead',
            {
              userset: { kind: 'direct' },
              directTypes: [
                { type: 'user', kind: 'object' },
                { type: 'robot', kind: 'object' },
              ],
            },
          ],
          [
            'member',
            {
              userset: {
                kind: 'union',
                of: [{ kind: 'direct' }, { kind: 'computed', relation: 'lead' }],
              },
              directTypes: [
                { type: 'user', kind: 'object' },
                { type: 'user', kind: 'wildcard' },
                { type: 'group', kind: 'userset', relation: 'member' },
              ],
            },
          ],
        ]),
      ],
      [
        'doc',
        new Map<string, RelationDefinition>([
          [
            'viewer',
            {
              userset: { kind: 'direct' },
              directTypes: [{ type: 'group', kind: 'userset', relation: 'member' }],
            },
          ],
        ]),
      ],
    ]),
  },
  tuples: [
    { object: 'doc:1', relation: 'viewer', subject: 'group:1#member' },
    { object: 'group:1', relation: 'member', subject: 'robot:1' },
    { object: 'doc:2', relation: 'viewer', subject: 'group:2#member' },
    { object: 'group:2', relation: 'member', subject: 'user:*' },
    { object: 'doc:3', relation: 'viewer', subject: 'group:9#member' },
    ...[3, 4, 5, 6, 7, 8, 9].map((id) => ({
      object: `group:${id}`,
      relation: 'member',
      subject: 'user:1',
    })),
  ],
  queries: [
    queryFor('doc:1', 'viewer', 'robot:1'),
    queryFor('doc:1', 'viewer', 'group:1#lead'),
    queryFor('doc:2', 'viewer', 'user:2'),
    queryFor('doc:3', 'viewer', 'user:1'),
  ],
  maxDepth: 25,
  maxWork: 8,
}
