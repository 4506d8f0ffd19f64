/** Servers for the two APIs that decide over a few tuples, each in a few lines of code. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type {
  PolicyDecisionPoint,
  RelationQuery,
} from '../../../../src/access/relations/decision-point.ts'
import {
  formatTuple,
  parseTuple,
  type RelationTuple,
} from '../../../../src/access/relations/tuple.ts'
import { Unavailable } from '../../../../src/errors.ts'
import { startHttpServer } from '../../../harness/http-server.ts'

/** Ids of stores, in the format of OpenFGA. */
export const STORES = {
  none: '01J0000000000000000000NNNE',
  acme: '01J0000000000000000000ACME',
  umbra: '01J000000000000000000VMBRA',
} as const
export const TOKEN = 'hush-4711'

/** Tuples of each store, as text. */
export type World = Record<string, readonly string[]>

/** One received request. */
export interface ReceivedRequest {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
}

export type Behavior = (response: ServerResponse, request: IncomingMessage) => unknown

/** Reports whether tuples, and usersets in them, lead from the object to the subject. */
export function holds(tuples: readonly RelationTuple[], query: RelationTuple, depth = 0): boolean {
  if (depth > 25) throw new RangeError('too deep')
  const { object, relation, subject } = query
  if (subject === `${object}#${relation}`) return true
  const wildcard = subject.includes('#') ? subject : subject.replace(/:.*/, ':*')
  return tuples
    .filter((tuple) => tuple.object === object && tuple.relation === relation)
    .some(({ subject: named }) => {
      if (named === subject || named === wildcard) return true
      const [group = '', member] = named.split('#')
      const inner = { object: group, relation: member ?? '', subject }
      return member !== undefined && holds(tuples, inner, depth + 1)
    })
}

const parsed = (tuples: readonly string[]) => tuples.flatMap((tuple) => parseTuple(tuple) ?? [])
const RELATIONS = ['viewer', 'member']

/**
 * Starts a server of both APIs: OpenFGA's check, and AuthZEN below `/pdp`, where `context.tenant`
 * names the store. `behavior`, if set, answers instead.
 */
export async function startAuthority(world: World) {
  const state = {
    world,
    requests: [] as ReceivedRequest[],
    behavior: undefined as Behavior | undefined,
  }

  const server = await startHttpServer(async (request, response) => {
    const body = JSON.parse((await text(request)) || 'null') as ReceivedRequest['body']
    state.requests.push({ path: request.url ?? '', headers: request.headers, body })
    if (state.behavior !== undefined) return state.behavior(response, request)
    const respond = (status: number, answer: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    const mistake = (code: string) => respond(400, { code, message: `no: ${TOKEN}` })
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return respond(401, { code: 'auth' })

    if (request.url === '/pdp/access/v1/evaluation') {
      const { subject, resource, action, context } = body as Record<string, Record<string, string>>
      const tuples = parsed(state.world[context?.tenant ?? 'none'] ?? [])
      const query = {
        object: `${resource?.type}:${resource?.id}`,
        relation: action?.name ?? '',
        subject: `${subject?.type}:${subject?.id}`,
      }
      return respond(200, { decision: holds(tuples, query) })
    }

    const store = /^\/stores\/(\w+)\/check$/.exec(request.url ?? '')?.[1]
    const tenant = Object.entries(STORES).find(([, id]) => id === store)?.[0]
    if (tenant === undefined) return respond(404, { code: 'store_id_not_found' })
    const key = body.tuple_key as { user: string; relation: string; object: string }
    if (!RELATIONS.includes(key.relation)) return mistake('validation_error')
    const { tuple_keys = [] } = (body.contextual_tuples ?? {}) as {
      tuple_keys?: { user: string; relation: string; object: string }[]
    }
    const tuples = parsed([
      ...(state.world[tenant] ?? []),
      ...tuple_keys.map((tuple) => formatTuple({ ...tuple, subject: tuple.user })),
    ])
    try {
      return respond(200, { allowed: holds(tuples, { ...key, subject: key.user }), resolution: '' })
    } catch {
      return mistake('authorization_model_resolution_too_complex')
    }
  })
  return Object.assign(state, { url: server.url, close: () => server.close() })
}

export type TestAuthority = Awaited<ReturnType<typeof startAuthority>>

/** Creates a query from a tuple as text; without a tenant unless `more` has one. */
export function query(tuple: string, more: Partial<RelationQuery> = {}): RelationQuery {
  const parts = parseTuple(tuple)
  if (parts === undefined) throw new TypeError(`not a tuple: ${tuple}`)
  return { tenant: null, contextualTuples: [], ...parts, ...more }
}

/** `allowed`, `denied`, `unknown:why`, or `dependency:fault`. */
export async function decisionOf(
  authority: PolicyDecisionPoint,
  question: RelationQuery,
): Promise<string> {
  try {
    const { decision, version } = await authority.check(question)
    if (version !== 0) throw new TypeError('an external decision point has no versions')
    return decision.outcome === 'unknown' ? `unknown:${decision.why}` : decision.outcome
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    return `${error.dependency}:${error.fault}${error.shortCircuited ? ', short-circuited' : ''}`
  }
}
