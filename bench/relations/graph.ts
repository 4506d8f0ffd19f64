/**
 * Generates the tuples of a tenant from identical organisations, with decisions that are known by
 * construction.
 */
import type { RelationTuple } from '../../src/access/relations/tuple.ts'

/** Numbers of tuples of the tenants: the same graph, ten times larger each time. */
export const SIZES = [1_000, 10_000, 100_000, 1_000_000] as const
export type Size = (typeof SIZES)[number]

/** Number of checked subjects, which belong to the organisations in turn. */
export const CALLERS = 50
/** Viewers of an organisation. Only the first one is checked. */
const VIEWERS = 6
const DEPARTMENTS = 2
const TEAMS = 4
/** Members of each team. None of them is checked. */
const TEAM_MEMBERS = 2
const PROJECTS = 8
const ORDERS = 36
/** One for each viewer and member, two for each order, and one for each object between them. */
export const TUPLES_OF_ORGANISATION =
  VIEWERS + DEPARTMENTS + TEAMS + TEAMS * TEAM_MEMBERS + PROJECTS + 2 * ORDERS

export const RELATION = 'viewer'

export interface Pair {
  /** Number of a subject, below {@link CALLERS}. */
  readonly caller: number
  readonly order: string
}

export const callerName = (caller: number): string => `caller-${caller}`

export const tenantOf = (size: number): string => `tuples-${size}`

export const organisationsIn = (size: number): number => size / TUPLES_OF_ORGANISATION

/**
 * Yields the tuples of one organisation, with the relations of `portcullis.fga`. A chain from an
 * order to a viewer of its organisation has four tuples, and a fifth one that names the viewer.
 */
export function* tuplesOf(organisation: number): Generator<RelationTuple> {
  const of = (type: string, index: number) => `${type}:${idOf(organisation, index)}`
  const top = `organisation:${organisation}`
  const outsider = (index: number) => `user:u${idOf(organisation, index)}`
  for (let index = 0; index < VIEWERS; index++) {
    const subject = index === 0 ? `user:${callerName(organisation % CALLERS)}` : outsider(index)
    yield { object: top, relation: RELATION, subject }
  }
  for (let index = 0; index < DEPARTMENTS; index++)
    yield { object: of('department', index), relation: 'organisation', subject: top }
  for (let index = 0; index < TEAMS; index++) {
    const team = of('team', index)
    yield { object: team, relation: 'department', subject: of('department', index % DEPARTMENTS) }
    for (let member = 0; member < TEAM_MEMBERS; member++)
      yield { object: team, relation: 'member', subject: outsider(index + member * TEAMS) }
  }
  for (let index = 0; index < PROJECTS; index++)
    yield { object: of('project', index), relation: 'team', subject: of('team', index % TEAMS) }
  for (let index = 0; index < ORDERS; index++) {
    const order = of('order', index)
    yield { object: order, relation: 'project', subject: of('project', index % PROJECTS) }
    yield { object: order, relation: 'owner', subject: outsider(index) }
  }
}

const idOf = (organisation: number, index: number): string => `${organisation}-${index}`

/**
 * Returns pairs for the tuples of a size, starting with pair number `from`: either those that are
 * allowed or those that are denied. No pair repeats before all orders were used.
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
    // Consecutive pairs are not neighbours in the graph.
    const organisation = number % organisations
    const round = Math.floor(number / organisations)
    const member = organisation % CALLERS
    const caller = answer === 'allowed' ? member : (member + 1 + (round % (CALLERS - 1))) % CALLERS
    return { caller, order: idOf(organisation, round % ORDERS) }
  })
}
