/** Examples of tuples for the documentation, valid under the policy's own model. */
import type { RelationModel } from '../../relations/model.ts'
import { type RelationTuple, WILDCARD } from '../../relations/tuple.ts'

/** Returns the first kind of tuple that a model permits. Without a model, the call does not exist. */
export function exampleTuple(model: RelationModel | undefined): RelationTuple {
  for (const [type, relations] of model?.types ?? [])
    for (const [relation, { directTypes }] of relations)
      for (const direct of directTypes) {
        const subject = `${direct.type}:${direct.kind === 'wildcard' ? WILDCARD : 'alice'}`
        const userset = direct.kind === 'userset' ? `#${direct.relation}` : ''
        return { object: `${type}:7`, relation, subject: subject + userset }
      }
  return { object: 'order:7', relation: 'owner', subject: 'user:alice' }
}
