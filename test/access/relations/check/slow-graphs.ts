/** Graphs that are slow to traverse, each in its own tenant. */
import type { RelationTuple } from '../../../../src/access/relations/tuple.ts'

export interface SlowGraph {
  readonly id: string
  readonly title: string
  readonly tuples: () => Iterable<RelationTuple>
  /** Each query is for `viewer` of {@link SLOW_OBJECT}. */
  readonly questions: readonly { readonly subject: string; readonly isViewer: boolean }[]
}

const FROM_PARENT = {
  tupleToUserset: { tupleset: { relation: 'parent' }, computedUserset: { relation: 'viewer' } },
}
const WITH_PARENT = {
  parent: { this: {} },
  viewer: { union: { child: [{ this: {} }, FROM_PARENT] } },
}
export const SLOW_MODEL = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'group',
      relations: { member: { this: {} } },
      metadata: {
        relations: {
          member: {
            directly_related_user_types: [{ type: 'user' }, { type: 'group', relation: 'member' }],
          },
        },
      },
    },
    {
      type: 'folder',
      relations: WITH_PARENT,
      metadata: {
        relations: {
          parent: { directly_related_user_types: [{ type: 'folder' }] },
          viewer: { directly_related_user_types: [{ type: 'user' }] },
        },
      },
    },
    {
      type: 'document',
      relations: WITH_PARENT,
      metadata: {
        relations: {
          parent: { directly_related_user_types: [{ type: 'folder' }] },
          viewer: { directly_related_user_types: [{ type: 'group', relation: 'member' }] },
        },
      },
    },
  ],
}
export const SLOW_OBJECT = 'document:1'
export const SLOW_RELATION = 'viewer'

const MEMBERS = 10_000
const DEPTH = 25
const WIDE = 10_000
const DENSE = 200
/** Number of other checked subjects. Each is in a group that is connected to nothing else. */
const STRANGERS = 10
/** Number of subjects in so many of these groups that a search from the subject is also slow. */
const JOINERS = 3
const JOINED = 3_000

const group = (number: number): string => `group:${number}`
const members = (number: number): string => `${group(number)}#member`
const contains = (container: number, subject: string): RelationTuple => ({
  object: group(container),
  relation: 'member',
  subject,
})
const viewer = (subject: string): RelationTuple => ({
  object: SLOW_OBJECT,
  relation: SLOW_RELATION,
  subject,
})

/** Yields nested groups, each in the one before it, with the members distributed over them. */
function* nested(depth: number): Generator<RelationTuple> {
  yield viewer(members(0))
  for (let level = 1; level < depth; level++) yield contains(level - 1, members(level))
  for (let member = 0; member < MEMBERS; member++) yield contains(member % depth, `user:m${member}`)
  yield contains(depth - 1, 'user:last')
}

/** Yields a tree of groups, four in each, with one member in each leaf. */
function* tree(): Generator<RelationTuple> {
  yield viewer(members(0))
  for (let child = 1; child < MEMBERS; child++) {
    const parent = Math.floor((child - 1) / 4)
    yield contains(parent, members(child))
    if (4 * child + 1 >= MEMBERS) yield contains(child, `user:m${child}`)
  }
  yield contains(MEMBERS - 1, 'user:last')
}

/** Yields one object that is shared with many groups. */
function* wide(): Generator<RelationTuple> {
  for (let number = 0; number < WIDE; number++) {
    yield viewer(members(number))
    yield contains(number, `user:m${number}`)
  }
  yield contains(WIDE - 1, 'user:last')
}

/** Yields an inverted tree of folders: each is in four others, and the last of them is shared. */
function* folders(): Generator<RelationTuple> {
  yield { object: SLOW_OBJECT, relation: 'parent', subject: 'folder:0' }
  for (let above = 1; above < MEMBERS; above++) {
    const object = `folder:${Math.floor((above - 1) / 4)}`
    yield { object, relation: 'parent', subject: `folder:${above}` }
  }
  yield { object: `folder:${MEMBERS - 1}`, relation: 'viewer', subject: 'user:last' }
}

/** Yields groups that are connected to nothing else, and their members. */
function* aside(): Generator<RelationTuple> {
  for (let stranger = 0; stranger < STRANGERS; stranger++)
    yield { object: 'group:aside', relation: 'member', subject: `user:stranger-${stranger}` }
  for (let joiner = 0; joiner < JOINERS; joiner++) {
    for (let joined = 0; joined < JOINED; joined++) {
      const object = `group:aside-${joined}`
      yield { object, relation: 'member', subject: `user:joiner-${joiner}` }
    }
  }
}

function* both(some: Iterable<RelationTuple>): Generator<RelationTuple> {
  yield* some
  yield* aside()
}

/** Yields groups that all contain each other. */
function* dense(): Generator<RelationTuple> {
  yield viewer(members(0))
  for (let one = 0; one < DENSE; one++)
    for (let other = 0; other < DENSE; other++)
      if (one !== other) yield contains(one, members(other))
  yield contains(DENSE - 1, 'user:last')
}

const questions: SlowGraph['questions'] = [
  { subject: 'user:last', isViewer: true },
  ...numbered('user:stranger-', STRANGERS),
  ...numbered('user:joiner-', JOINERS),
]

function numbered(name: string, count: number): SlowGraph['questions'] {
  return Array.from({ length: count }, (_, number) => ({
    subject: `${name}${number}`,
    isViewer: false,
  }))
}

const graphs = [
  {
    id: 'slow-nested',
    title: `10,000 members in groups ${DEPTH} deep`,
    tuples: () => nested(DEPTH),
  },
  {
    id: 'slow-deeper',
    title: `10,000 members in groups ${DEPTH + 1} deep`,
    tuples: () => nested(DEPTH + 1),
  },
  { id: 'slow-tree', title: '10,000 groups in a tree', tuples: tree },
  { id: 'slow-folders', title: '10,000 folders in a tree', tuples: folders },
  { id: 'slow-wide', title: '10,000 groups on one object', tuples: wide },
  { id: 'slow-dense', title: '200 groups, all in each other', tuples: dense },
] as const

export const SLOW_GRAPHS: readonly SlowGraph[] = graphs.map(({ id, title, tuples }) => ({
  id,
  title,
  questions,
  tuples: () => both(tuples()),
}))
