/** Relation tuples: identical organisations, so that the right decision is known by construction. */
import { bearing, type Question } from '../load/questions.ts'
import { oursWith, startOnNode } from '../node/contestants.ts'
import { ORIGIN_BODY } from '../stack/backends.ts'
import { contestantOf } from './policies.ts'
import type { Subject } from './table.ts'

interface Tuple {
  readonly object: string
  readonly relation: string
  readonly subject: string
}

/** Number of callers, which are viewers of the organisations in turn. */
const CALLERS = 50
const VIEWERS = 6
const DEPARTMENTS = 2
const TEAMS = 4
const MEMBERS = 2
const PROJECTS = 8
const ORDERS = 36
export const TUPLES_OF_ORGANISATION =
  VIEWERS + DEPARTMENTS + TEAMS + TEAMS * MEMBERS + PROJECTS + 2 * ORDERS

/** Tuples of one call, and calls at a time. */
const OF_CALL = 100
const CALLS = 8
/** Orders that are requested, evenly distributed. */
const REQUESTED = 2_000

/** The id of an order: a UUID, as the policy requires. */
export const orderId = (organisation: number, order: number): string =>
  `00000000-0000-7000-8000-${(organisation * ORDERS + order).toString(16).padStart(12, '0')}`

/**
 * Yields the tuples of one organisation, with the relations of `portcullis.fga`. From an order to a
 * viewer of its organisation lead four tuples, and a fifth one names the viewer.
 */
export function* tuplesOf(organisation: number): Generator<Tuple> {
  const of = (type: string, index: number) => `${type}:${organisation}-${index}`
  const outsider = (index: number) => `user:u${organisation}-${index}`
  const top = `organisation:${organisation}`
  for (let index = 0; index < VIEWERS; index++) {
    const subject = index === 0 ? `user:caller-${organisation % CALLERS}` : outsider(index)
    yield { object: top, relation: 'viewer', subject }
  }
  for (let index = 0; index < DEPARTMENTS; index++)
    yield { object: of('department', index), relation: 'organisation', subject: top }
  for (let index = 0; index < TEAMS; index++) {
    const team = of('team', index)
    yield { object: team, relation: 'department', subject: of('department', index % DEPARTMENTS) }
    for (let member = 0; member < MEMBERS; member++)
      yield { object: team, relation: 'member', subject: outsider(index + member * TEAMS) }
  }
  for (let index = 0; index < PROJECTS; index++)
    yield { object: of('project', index), relation: 'team', subject: of('team', index % TEAMS) }
  for (let index = 0; index < ORDERS; index++) {
    const object = `order:${orderId(organisation, index)}`
    yield { object, relation: 'project', subject: of('project', index % PROJECTS) }
    yield { object, relation: 'owner', subject: outsider(index) }
  }
}

/** Writes all tuples by the operators' API. Throws an `Error` of one line for a refusal. */
async function write(url: string, token: string, organisations: number): Promise<void> {
  let next = 0
  async function writer(): Promise<void> {
    for (let number = next++; number < organisations; number = next++) {
      const writes = [...tuplesOf(number)]
      for (let at = 0; at < writes.length; at += OF_CALL) {
        const response = await fetch(`${url}/-/admin/relations`, {
          method: 'POST',
          headers: { ...bearing(token), 'content-type': 'application/json' },
          body: JSON.stringify({ writes: writes.slice(at, at + OF_CALL) }),
        })
        const text = await response.text()
        if (response.status !== 200) throw new Error(`relations: ${response.status} ${text}`)
      }
    }
  }
  await Promise.all(Array.from({ length: CALLS }, writer))
}

export const tuples: Subject = {
  id: 'tuples',
  title: 'relation tuples',
  sizes: [1_000, 10_000, 100_000, 1_000_000],
  async start(stage, size) {
    const { ground, onProgress, connections, tokens } = stage
    const prefix = `pc-tuples-${size}:`
    const gateway = oursWith('tuples', size, { REDIS_PREFIX: prefix })
    const started = await startOnNode(stage, gateway, stage)
    const organisations = Math.ceil(size / TUPLES_OF_ORGANISATION)
    const [operator = ''] = await ground.mint(1, ['operator'])
    onProgress(`writing ${size.toLocaleString('en')} tuples`)
    await write(started.url, operator, organisations)
    const questions = Array.from({ length: REQUESTED }, (_, at): Question => {
      const organisation = Math.floor((at * organisations) / REQUESTED)
      return {
        method: 'GET',
        path: `/orders/${orderId(organisation, at % ORDERS)}/invoice`,
        headers: bearing(tokens.writers[organisation % CALLERS] ?? ''),
        status: 200,
        answer: ORIGIN_BODY,
      }
    })
    return contestantOf(started, questions, connections)
  },
}
