import type { RelationTuple } from './tuple.ts'

/** Written and deleted together. */
export const MAX_TUPLES_PER_WRITE = 100
/** For one relation to one object. */
export const MAX_LISTED_SUBJECTS = 1_000

/** Tuples that are written and deleted together. No tuple is in it twice. */
export interface TupleChanges {
  readonly writes: readonly RelationTuple[]
  readonly deletes: readonly RelationTuple[]
}

export interface TuplesChanged {
  /** Without tuples that existed already. */
  readonly written: number
  /** Without tuples that did not exist. */
  readonly deleted: number
  /** The new version of the tenant's tuples: microseconds since the epoch, always increasing. */
  readonly version: number
}

/** Selects the tuples that are equal in every given part. */
export interface TupleFilter {
  /** `type:id`, or `type:` for all objects of a type. */
  readonly object?: string | undefined
  /** Allowed only with an `object` that has an id. */
  readonly relation?: string | undefined
  readonly subject?: string | undefined
}

export interface TupleQuery extends TupleFilter {
  /** At least 1. */
  readonly limit: number
  /** The last tuple of the previous page. It may have been deleted meanwhile. */
  readonly after?: RelationTuple | undefined
}

/**
 * A page of tuples, sorted by type, object and relation. Within one relation, object subjects
 * precede usersets. With `subject` in the query, the order is by object and relation.
 */
export interface TuplePage {
  readonly tuples: readonly RelationTuple[]
  readonly hasMore: boolean
}

export interface NamedSubjects {
  /** At most {@link MAX_LISTED_SUBJECTS}. */
  readonly subjects: readonly string[]
  readonly hasMore: boolean
}

export interface SubjectsByRelation {
  /** One entry for each relation of the call, in the same order. */
  readonly named: readonly NamedSubjects[]
  /** The result includes all writes up to this version. 0: no tuple was ever written. */
  readonly version: number
}

/**
 * Port: the store of relation tuples. The tuples of each tenant are separate; null is for callers
 * without a tenant. Throws `Unavailable` if it cannot read or write.
 *
 * Does NOT check its arguments: the syntax of a tuple, whether the model permits it
 * (`permitted.ts`), or the number of tuples.
 */
export interface RelationTuples {
  /**
   * Applies all changes or none. Every check that starts afterwards sees them. A repeated write
   * changes only the version. After `Unavailable`, the write may or may not have been applied; it
   * is not applied later.
   */
  write(tenant: string | null, changes: TupleChanges): Promise<TuplesChanged>
  /**
   * Returns a page. A tuple that exists throughout the listing is on exactly one page, whatever is
   * written or deleted meanwhile. Throws `TypeError` if the query does not select the tuple in
   * `after`.
   */
  read(tenant: string | null, query: TupleQuery): Promise<TuplePage>
  /** Returns the subjects of each relation to an object. Does NOT expand usersets. */
  subjectsOf(
    tenant: string | null,
    object: string,
    relations: readonly string[],
  ): Promise<SubjectsByRelation>
}

/** Reports whether a filter selects a tuple. */
export function matchesFilter(
  tuple: RelationTuple,
  { object, relation, subject }: TupleFilter,
): boolean {
  const isOfObject =
    object === undefined ||
    (object.endsWith(':') ? tuple.object.startsWith(object) : tuple.object === object)
  return (
    isOfObject &&
    (relation === undefined || tuple.relation === relation) &&
    (subject === undefined || tuple.subject === subject)
  )
}
