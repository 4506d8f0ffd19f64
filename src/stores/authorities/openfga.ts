/** OpenFGA, asked over its HTTP API: `POST /stores/{store}/check`. */
import * as z from 'zod'
import { Unavailable } from '../../errors.ts'
import type { RelationAnswer, RelationAuthority, RelationQuery } from '../../relations/authority.ts'
import { parseObject, parseSubject, type RelationTuple } from '../../relations/tuple.ts'
import type { OpenfgaStore } from '../../validators/authority.ts'
import { ALLOWED, DENIED, entryOf } from './question.ts'
import { type AuthorityServerOptions, createAuthorityServer } from './server.ts'

export interface OpenfgaAuthorityOptions extends AuthorityServerOptions {
  /** By tenant; '' is for callers without one. */
  readonly stores: ReadonlyMap<string, OpenfgaStore>
}

/** Longest names that it takes, characters. */
const MAX_OBJECT_CHARS = 256
const MAX_SUBJECT_CHARS = 512
/** It stopped: the tuples lead on farther than it follows. */
const TOO_COMPLEX = 'authorization_model_resolution_too_complex'

/** A missing `allowed` is no answer, though protocol buffers would leave out `false`. */
const checked = z.looseObject({ allowed: z.boolean() })

const TOO_DEEP: RelationAnswer = {
  decision: { outcome: 'unknown', why: 'max_depth_exceeded' },
  version: 0,
}

/**
 * Makes the authority. Objects, subjects and contextual tuples are sent as they are written in tuples,
 * ids escaped, so the tuples of its stores must be written in the same way.
 *
 * A tenant without a store is denied everything, unasked, and never looked for in the store of another;
 * so are names that OpenFGA cannot have tuples for, such as too long ones. With `atLeast` it is asked for
 * `HIGHER_CONSISTENCY`: it passes by its caches, and knows every write that it had acknowledged when it
 * was asked. It has no versions, so the answer's is 0. A model that lacks the type or the relation,
 * like everything else that it refuses to answer, is `Unavailable` (`authority`).
 */
export function createOpenfgaAuthority({
  stores,
  ...options
}: OpenfgaAuthorityOptions): RelationAuthority {
  const openfga = createAuthorityServer(options)
  return {
    async check(query) {
      const place = entryOf(stores, query.tenant)
      if (place === undefined || !isExpressible(query)) return DENIED
      const path = `/stores/${place.store}/check`
      const reply = await openfga.ask(path, questionOf(query, place), checked)
      if (reply.kind === 'answered') return reply.answer.allowed ? ALLOWED : DENIED
      if (reply.code === TOO_COMPLEX) return TOO_DEEP
      throw new Unavailable('authority', 'refused')
    },
  }
}

function questionOf(query: RelationQuery, { model }: OpenfgaStore): object {
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
