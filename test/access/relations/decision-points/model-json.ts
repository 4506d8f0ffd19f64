/** Random models in OpenFGA's JSON, repaired so that OpenFGA accepts them. */
import type { DirectType, RelationModel, Userset } from '../../../../src/access/relations/model.ts'

type Json = Record<string, unknown>

/**
 * Returns the model in the form of OpenFGA's API. Undefined references become direct relations, and
 * only direct relations have types. OpenFGA may still refuse a model with relations that no subject
 * can have.
 */
export function modelJson({ types }: RelationModel): object {
  const has = (type: string, relation: string) => types.get(type)?.has(relation) ?? false

  function usersetJson(type: string, userset: Userset): Json {
    const of = (part: Userset) => usersetJson(type, part)
    switch (userset.kind) {
      case 'direct':
        return { this: {} }
      case 'computed':
        return has(type, userset.relation)
          ? { computedUserset: { relation: userset.relation } }
          : { this: {} }
      case 'tuple_to_userset': {
        const { tupleset, computed } = userset
        const parents = types.get(type)?.get(tupleset)?.directTypes ?? []
        return parents.some((parent) => has(parent.type, computed))
          ? {
              tupleToUserset: {
                tupleset: { relation: tupleset },
                computedUserset: { relation: computed },
              },
            }
          : { this: {} }
      }
      case 'union':
      case 'intersection':
        return { [userset.kind]: { child: userset.of.map(of) } }
      case 'exclusion':
        return { difference: { base: of(userset.base), subtract: of(userset.subtract) } }
      default:
        return userset satisfies never
    }
  }

  function directJson(made: Json, directTypes: readonly DirectType[]): Json[] {
    if (!JSON.stringify(made).includes('"this"')) return []
    const texts = directTypes
      .filter((direct) => direct.kind !== 'userset' || has(direct.type, direct.relation))
      .map((direct) =>
        JSON.stringify({
          type: direct.type,
          ...(direct.kind === 'wildcard' && { wildcard: {} }),
          ...(direct.kind === 'userset' && { relation: direct.relation }),
        }),
      )
    return [...new Set(texts)].map((text) => JSON.parse(text) as Json)
  }

  const type_definitions = [...types].map(([type, defined]) => {
    if (defined.size === 0) return { type }
    const made = [...defined].map(([relation, { userset, directTypes }]) => {
      const json = usersetJson(type, userset)
      const direct = { directly_related_user_types: directJson(json, directTypes) }
      return { relation, json, direct }
    })
    return {
      type,
      relations: Object.fromEntries(made.map(({ relation, json }) => [relation, json])),
      metadata: {
        relations: Object.fromEntries(made.map(({ relation, direct }) => [relation, direct])),
      },
    }
  })
  return { schema_version: '1.1', type_definitions }
}
