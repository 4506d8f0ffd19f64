import { inEnglish } from '../../validators/english.ts'
import {
  type DirectType,
  ModelInvalid,
  type ModelMistake,
  type RelationDefinition,
  type RelationModel,
  type Userset,
} from './model.ts'
import { mistakesInModel } from './model-mistakes.ts'
import {
  type DirectTypeJson,
  relationModelSchema,
  type TypeDefinitionJson,
  type UsersetJson,
  unboundedness,
} from './model-schema.ts'

const SCHEMA_VERSION = '1.1'

/**
 * Compiles a model in the JSON form of OpenFGA's API, which is also what OpenFGA's language is
 * transformed into. Throws {@link ModelInvalid} with all mistakes; if the JSON does not have the
 * shape of a model, with the mistakes of its shape only.
 *
 * In a compiled model every name is defined, no computed relation leads back to itself, and at
 * least one subject can have each relation.
 *
 * Refuses conditions, modules (schema 1.2) and all unknown members. A parser that skips them would
 * change what the author of the model decided.
 */
export function compileModel(json: unknown): RelationModel {
  const unbounded = unboundedness(json)
  if (unbounded !== undefined) throw new ModelInvalid([{ at: 'model', why: unbounded }])
  const { data, error } = relationModelSchema.safeParse(json, inEnglish())
  if (error !== undefined)
    throw new ModelInvalid(error.issues.map(({ path, message }) => mistakeAt(json, path, message)))
  const { schema_version, type_definitions, conditions } = data
  const types = new Map<string, ReadonlyMap<string, RelationDefinition>>()
  const mistakes: ModelMistake[] = []
  if (schema_version !== SCHEMA_VERSION)
    mistakes.push({ at: 'model', why: `schema ${schema_version} is not supported; use 1.1` })
  for (const name of Object.keys(conditions ?? {}))
    mistakes.push({
      at: 'model',
      why: `condition ${name}: conditions are not supported`,
      condition: name,
    })
  for (const definition of type_definitions) {
    const { type } = definition
    if (types.has(type))
      mistakes.push({ at: type, why: 'this type is defined twice', isDuplicate: true })
    mistakes.push(...mistakesInMetadata(definition))
    types.set(type, compileRelations(definition))
  }
  const model: RelationModel = { types }
  mistakes.push(...mistakesInModel(model))
  if (mistakes.length > 0) throw new ModelInvalid(mistakes)
  return model
}

function compileRelations({ relations, metadata }: TypeDefinitionJson) {
  const direct = new Map(Object.entries(metadata?.relations ?? {}))
  return new Map(
    Object.entries(relations ?? {}).map(([name, userset]): [string, RelationDefinition] => {
      const directTypes = direct.get(name)?.directly_related_user_types ?? []
      return [
        name,
        { userset: compileUserset(userset), directTypes: directTypes.map(directTypeOf) },
      ]
    }),
  )
}

/** Yields the mistakes in a type's metadata that a compiled model cannot represent. */
function* mistakesInMetadata({
  type,
  relations,
  metadata,
}: TypeDefinitionJson): Generator<ModelMistake> {
  for (const [relation, { directly_related_user_types: direct }] of Object.entries(
    metadata?.relations ?? {},
  )) {
    const at = `${type}#${relation}`
    if (!Object.hasOwn(relations ?? {}, relation))
      yield { at, why: 'has metadata, but is not defined' }
    for (const { type: subject, relation: of, wildcard, condition } of direct ?? []) {
      if (condition) yield { at, why: `${subject} with ${condition}: conditions are not supported` }
      if (wildcard && of)
        yield { at, why: `${subject}: cannot have both a relation and a wildcard` }
    }
  }
}

function directTypeOf({ type, relation, wildcard }: DirectTypeJson): DirectType {
  if (wildcard) return { type, kind: 'wildcard' }
  return relation ? { type, kind: 'userset', relation } : { type, kind: 'object' }
}

/** The schema guarantees that exactly one of the members is present. */
function compileUserset(json: UsersetJson): Userset {
  const { computedUserset, tupleToUserset, union, intersection, difference } = json
  if (computedUserset) return { kind: 'computed', relation: computedUserset.relation }
  if (tupleToUserset)
    return {
      kind: 'tuple_to_userset',
      tupleset: tupleToUserset.tupleset.relation,
      computed: tupleToUserset.computedUserset.relation,
    }
  if (union) return { kind: 'union', of: union.child.map(compileUserset) }
  if (intersection) return { kind: 'intersection', of: intersection.child.map(compileUserset) }
  if (difference)
    return {
      kind: 'exclusion',
      base: compileUserset(difference.base),
      subtract: compileUserset(difference.subtract),
    }
  return { kind: 'direct' }
}

/**
 * Turns a schema issue into a mistake: `type_definitions.0.relations.viewer.union` becomes
 * `document#viewer` and the rest of the path.
 */
function mistakeAt(json: unknown, path: readonly PropertyKey[], message: string): ModelMistake {
  const [list, index, ...rest] = path.map(String)
  const type = list === 'type_definitions' && index !== undefined && typeNamed(json, Number(index))
  if (!type)
    return { at: 'model', why: [path.map(String).join('.'), message].filter(Boolean).join(': ') }
  const start = rest[0] === 'metadata' ? 1 : 0
  const relation = rest[start] === 'relations' ? rest[start + 1] : undefined
  const left = relation === undefined ? rest : rest.slice(start + 2)
  return {
    at: relation === undefined ? type : `${type}#${relation}`,
    why: [left.join('.'), message].filter(Boolean).join(': '),
  }
}

function typeNamed(json: unknown, index: number): string | undefined {
  const type = (json as { type_definitions?: { type?: unknown }[] }).type_definitions?.[index]?.type
  return typeof type === 'string' ? type : undefined
}
