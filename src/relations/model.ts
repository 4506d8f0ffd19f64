/** Authorization models, compiled: what each relation of each type is made of. */

/** What makes somebody have a relation (Zanzibar section 2.3.1; OpenFGA schema 1.1). */
export type Userset =
  /** Whom a tuple names. */
  | { readonly kind: 'direct' }
  /** Who has another relation to the same object. */
  | { readonly kind: 'computed'; readonly relation: string }
  /** Who has `computed` to the objects that tuples of `tupleset` name. */
  | { readonly kind: 'tuple_to_userset'; readonly tupleset: string; readonly computed: string }
  | { readonly kind: 'union'; readonly of: readonly Userset[] }
  | { readonly kind: 'intersection'; readonly of: readonly Userset[] }
  | { readonly kind: 'exclusion'; readonly base: Userset; readonly subtract: Userset }

/** Whom tuples of a relation may name: `type:id`, `type:id#relation`, or `type:*`. */
export type DirectType =
  | { readonly type: string; readonly kind: 'object' }
  | { readonly type: string; readonly kind: 'userset'; readonly relation: string }
  | { readonly type: string; readonly kind: 'wildcard' }

export interface RelationDefinition {
  readonly userset: Userset
  /** Empty where no tuple may name anybody. */
  readonly directTypes: readonly DirectType[]
}

/** Relations by type and name. A type without relations is there, with none. */
export interface RelationModel {
  readonly types: ReadonlyMap<string, ReadonlyMap<string, RelationDefinition>>
}

/** A model cannot be worked with. Each mistake is `<where>: <why>`; see {@link ModelMistake}. */
export class ModelInvalid extends Error {
  override readonly name = 'ModelInvalid'
  readonly mistakes: readonly string[]
  /** The same, in parts. */
  readonly found: readonly ModelMistake[]

  constructor(mistakes: readonly ModelMistake[]) {
    const lines = mistakes.map(({ at, why }) => `${at}: ${why}`)
    super(`The authorization model is not valid:\n${lines.map((line) => `  - ${line}`).join('\n')}`)
    this.mistakes = lines
    this.found = mistakes
  }
}

/** `at` is `type#relation`, `type`, or `model`. */
export interface ModelMistake {
  readonly at: string
  readonly why: string
}

/** Whether tuples of this kind may name such a subject. */
export function permits(
  direct: DirectType,
  subject: {
    readonly type: string
    readonly relation: string | undefined
    readonly isWildcard: boolean
  },
): boolean {
  if (direct.type !== subject.type) return false
  if (direct.kind === 'userset') return direct.relation === subject.relation
  return subject.relation === undefined && (direct.kind === 'wildcard') === subject.isWildcard
}

/** As a {@link DirectType} is written in OpenFGA's language. */
export function formatDirectType(direct: DirectType): string {
  if (direct.kind === 'userset') return `${direct.type}#${direct.relation}`
  return direct.kind === 'wildcard' ? `${direct.type}:*` : direct.type
}

/** The usersets that a userset is made of, at the same object. Empty for those that tuples decide. */
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

/** A userset and all that it is made of, each before its parts. */
export function* usersetsOf(userset: Userset): Generator<Userset> {
  yield userset
  for (const part of partsOf(userset)) yield* usersetsOf(part)
}
