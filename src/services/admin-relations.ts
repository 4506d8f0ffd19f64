/** What the operators' calls about relations work with, made of a policy. */
import { Misconfigured } from '../errors.ts'
import type { PolicyRelations } from '../policy-relations.ts'
import type { RelationAuthority } from '../relations/authority.ts'
import type { AdminRelations } from '../routes/admin/stores.ts'
import {
  createRelationCheck,
  createUpstashRelationAuthority,
} from '../stores/upstash/relation-check.ts'
import { createRelationTuples } from '../stores/upstash/relation-tuples.ts'
import type { RedisRest } from '../stores/upstash/rest.ts'

export interface AdminRelationParts {
  readonly rest: RedisRest
  /** The gateway's own issuer identifier: operators choose its subjects and tenants. */
  readonly publicUrl: string
  /** Trusted ones, whose operators' tenants count where the policy names none. Default: any issuer's. */
  readonly trusted?: readonly string[]
  /** Decides where the policy has an external authority. Default none. */
  readonly external?: RelationAuthority | undefined
}

/** Of a policy without relations there is nothing. Throws `Misconfigured` without the authority it wants. */
export function adminRelations(
  relations: PolicyRelations | undefined,
  { rest, publicUrl, trusted, external }: AdminRelationParts,
): AdminRelations | undefined {
  if (relations === undefined) return undefined
  const { model, authority } = relations
  const named = relations.issuers ?? trusted
  const issuers = named && new Set([...named, publicUrl])
  if (authority !== 'redis') {
    if (external === undefined)
      throw new Misconfigured('The policy', [`relations.authority: there is no ${authority}`])
    return { model, issuers, tuples: undefined, authority: external }
  }
  return {
    model,
    issuers,
    tuples: createRelationTuples(rest, model.types.keys()),
    authority: createUpstashRelationAuthority(rest, createRelationCheck(model)),
  }
}
