/** The tuples of a tenant, made of organisations that are all alike, and what they say by construction. */
import type { RelationTuple } from '../../src/relations/tuple.ts'

/** How many tuples tenants have: the same graph, ten times as often each time. */
export const SIZES = [1_000, 10_000, 100_000, 1_000_000] as const
export type Size = (typeof SIZES)[number]

/**
 * Subjects that are asked about. The first one belongs to the organisations 0, 50, 100 and so on, the
 * second one to the next of them.
 */
export const CALLERS = 50
/** Of an organisation; all but the first of the members are asked about by nobody. */
const MEMBERS = 10
const DEPARTMENTS = 2
const TEAMS = 4
const PROJECTS = 12
const ORDERS = 72
/** One for each member, and one for each object, which names what it belongs to. */
export const TUPLES_OF_ORGANISATION = MEMBERS + DEPARTMENTS + TEAMS + PROJECTS + ORDERS

/** What is asked of every order. */
export const RELATION = 'viewer'

/** A subject and an object, by number. */
export interface Pair {
  /** Of the first {@link CALLERS}. */
  readonly caller: number
  /** Id of an order. */
  readonly order: string
}

export const callerName = (caller: number): string => `caller-${caller}`

/** Who is asked about the tuples of a size. Each size is a tenant of its own. */
export const tenantOf = (size: number): string => `tuples-${size}`

export const organisationsIn = (size: number): number => size / TUPLES_OF_ORGANISATION

/** All that belongs to one organisation. A path from an order to a member leads over four tuples. */
export function* tuplesOf(organisation: number): Generator<RelationTuple> {
  const top = `organisation:${organisation}`
  for (let member = 0; member < MEMBERS; member++) {
    const name = member === 0 ? callerName(organisation % CALLERS) : `u${organisation}-${member}`
    yield { object: top, relation: 'member', subject: `user:${name}` }
  }
  const levels = [
    { type: 'department', count: DEPARTMENTS },
    { type: 'team', count: TEAMS },
    { type: 'project', count: PROJECTS },
    { type: 'order', count: ORDERS },
  ]
  let above = { type: 'organisation', count: 1 }
  for (const level of levels) {
    for (let index = 0; index < level.count; index++) {
      const parent =
        above.count === 1 ? top : `${above.type}:${idOf(organisation, index % above.count)}`
      const object = `${level.type}:${idOf(organisation, index)}`
      yield { object, relation: above.type, subject: parent }
    }
    above = level
  }
}

const idOf = (organisation: number, index: number): string => `${organisation}-${index}`

/**
 * Pairs over the tuples of a size, from the pair of number `from` on: those whose answer is yes, or
 * those whose answer is no. None comes twice before all orders have come.
 */
export function pairsOf(
  size: number,
  answer: 'allowed' | 'denied',
  count: number,
  from = 0,
): readonly Pair[] {
  const organisations = organisationsIn(size)
  return Array.from({ length: count }, (_, at) => {
    const number = from + at
    // Neighbours in time are no neighbours in the graph.
    const organisation = number % organisations
    const round = Math.floor(number / organisations)
    const member = organisation % CALLERS
    const caller = answer === 'allowed' ? member : (member + 1 + (round % (CALLERS - 1))) % CALLERS
    return { caller, order: idOf(organisation, round % ORDERS) }
  })
}
