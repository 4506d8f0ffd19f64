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
