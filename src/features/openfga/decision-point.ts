/** Relation checks at OpenFGA, over its HTTP API: `POST /stores/{store}/check`. */

import * as z from 'zod/mini'
import type {
  PolicyDecisionPoint,
  RelationAnswer,
  RelationQuery,
} from '../../access/relations/decision-point.ts'
import {
  ALLOWED,
  createDecisionPointServer,
  DENIED,
  type DecisionPointServerOptions,
  findEntry,
} from '../../access/relations/decision-points/server.ts'
import { parseObject, parseSubject, type RelationTuple } from '../../access/relations/tuple.ts'
import { Unavailable } from '../../errors.ts'
import type { OpenfgaStore } from '../../validators/decision-points.ts'

export interface OpenfgaDecisionPointOptions extends DecisionPointServerOptions {
  /** Stores by tenant; '' is for callers without a tenant. */
  readonly stores: ReadonlyMap<string, OpenfgaStore>
}

/** The longest names that OpenFGA accepts, in characters. */
const MAX_OBJECT_CHARS = 256
const MAX_SUBJECT_CHARS = 512
/** The error code of a check that stopped because the chain of tuples is too long. */
const TOO_COMPLEX = 'authorization_model_resolution_too_complex'

/** A response without `allowed` is malformed, although protocol buffers may omit `false`. */
const checkResponse = z.looseObject({ allowed: z.boolean() })

const TOO_DEEP: RelationAnswer = {
  decision: { outcome: 'unknown', why: 'max_depth_exceeded' },
  version: 0,
}

/**
 * Creates the policy decision point. Objects, subjects and contextual tuples are sent in the
 * written form of tuples, with escaped ids. So the tuples in the OpenFGA stores must be written in
 * the same form.
 *
 * Denies without a call: tenants without a store, and names that OpenFGA cannot have tuples for,
 * such as names that are too long.
 *
 * With `atLeast` the call requires `HIGHER_CONSISTENCY`: OpenFGA bypasses its caches, so the answer
 * includes every write that it acknowledged before the call. OpenFGA has no versions, so answers
 * have the version 0. A query that OpenFGA refuses is `Unavailable`, for example because its model
 * lacks the relation.
 */
export function createOpenfgaDecisionPoint({
  stores,
  ...options
}: OpenfgaDecisionPointOptions): PolicyDecisionPoint {
  const openfga = createDecisionPointServer(options)
  return {
    async check(query) {
      const store = findEntry(stores, query.tenant)
      if (store === undefined || !isExpressible(query)) return DENIED
      const path = `/stores/${store.store}/check`
      const reply = await openfga.post(path, createRequest(query, store), checkResponse)
      if (reply.kind === 'answered') return reply.answer.allowed ? ALLOWED : DENIED
      if (reply.code === TOO_COMPLEX) return TOO_DEEP
      throw new Unavailable('authority', 'refused')
    },
  }
}

function createRequest(query: RelationQuery, { model }: OpenfgaStore): object {
  const { contextualTuples, atLeast = 0 } = query
  return {
    tuple_key: tupleKeyOf(query),
    ...(contextualTuples.length > 0 && {
      contextual_tuples: { tuple_keys: contextualTuples.map(tupleKeyOf) },
    }),
    ...(model !== undefined && { authorization_model_id: model }),
    ...(atLeast > 0 && { consistency: 'HIGHER_CONSISTENCY' }),
  }
}

const tupleKeyOf = ({ object, relation, subject }: RelationTuple) => ({
  user: subject,
  relation,
  object,
})

const isExpressible = (query: RelationQuery): boolean =>
  [query, ...query.contextualTuples].every(
    ({ object, subject }) =>
      parseObject(object) !== undefined &&
      parseSubject(subject) !== undefined &&
      hasAtMost(MAX_OBJECT_CHARS, object) &&
      hasAtMost(MAX_SUBJECT_CHARS, subject),
  )

const hasAtMost = (max: number, text: string): boolean =>
  text.length <= max || [...text].length <= max
