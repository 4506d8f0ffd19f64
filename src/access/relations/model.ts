/** Compiled authorization models: the definition of each relation of each type. */

/** How a subject gets a relation (Zanzibar section 2.3.1; OpenFGA schema 1.1). */
export type Userset =
  /** The subjects that tuples of the relation name. */
  | { readonly kind: 'direct' }
  /** The subjects that have another relation to the same object. */
  | { readonly kind: 'computed'; readonly relation: string }
  /** The subjects with the relation `computed` to the objects that tuples of `tupleset` name. */
  | { readonly kind: 'tuple_to_userset'; readonly tupleset: string; readonly computed: string }
  | { readonly kind: 'union'; readonly of: readonly Userset[] }
  | { readonly kind: 'intersection'; readonly of: readonly Userset[] }
  | { readonly kind: 'exclusion'; readonly base: Userset; readonly subtract: Userset }

/** Subjects that tuples of a relation may name: `type:id`, `type:id#relation`, or `type:*`. */
export type DirectType =
  | { readonly type: string; readonly kind: 'object' }
  | { readonly type: string; readonly kind: 'userset'; readonly relation: string }
  | { readonly type: string; readonly kind: 'wildcard' }

export interface RelationDefinition {
  readonly userset: Userset
  /** Empty if tuples cannot assign the relation. */
  readonly directTypes: readonly DirectType[]
}

/** Relations by type and by name. A type without relations has an empty map. */
export interface RelationModel {
  readonly types: ReadonlyMap<string, ReadonlyMap<string, RelationDefinition>>
}

/** The model is not valid. Each mistake is `<at>: <why>`. */
export class ModelInvalid extends Error {
  override readonly name = 'ModelInvalid'
  readonly mistakes: readonly string[]
  readonly found: readonly ModelMistake[]

  constructor(mistakes: readonly ModelMistake[]) {
    const lines = mistakes.map(({ at, why }) => `${at}: ${why}`)
    super(`The authorization model is not valid:\n${lines.map((line) => `  - ${line}`).join('\n')}`)
    this.mistakes = lines
    this.found = mistakes
  }
}

/** A mistake in a model. `at` is `type#relation`, `type`, or `model`. */
export interface ModelMistake {
  readonly at: string
  readonly why: string
  /** The name of the condition of the model that it is about. */
  readonly condition?: string
  /** Whether it is about the second of two types with one name. */
  readonly isDuplicate?: true
}

/** Returns the kind of subjects as OpenFGA's language writes it: `user`, `user:*`, `group#member`. */
export function kindOf(direct: DirectType): string {
  if (direct.kind === 'userset') return `${direct.type}#${direct.relation}`
  return direct.kind === 'wildcard' ? `${direct.type}:*` : direct.type
}

/** Returns the operands of a union, an intersection or an exclusion; otherwise an empty list. */
export function partsOf(userset: Userset): readonly Userset[] {
  switch (userset.kind) {
    case 'union':
    case 'intersection':
      return userset.of
    case 'exclusion':
      return [userset.base, userset.subtract]
    default:
      return []
  }
}

/** Yields a userset and all usersets inside it, each before its parts. */
export function* usersetsOf(userset: Userset): Generator<Userset> {
  yield userset
  for (const part of partsOf(userset)) yield* usersetsOf(part)
}
