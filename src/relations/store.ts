/** Where relation tuples are kept: the port of whoever writes, lists and explains them. */
import type { RelationTuple } from './tuple.ts'

/** Written and deleted together in one call, at most. */
export const MAX_TUPLES_PER_WRITE = 100
/** Subjects of one relation to one object that are told at once. */
export const MAX_SUBJECTS_TOLD = 1_000

/** Tuples that come and go together. None is in it twice. */
export interface TupleChanges {
  readonly writes: readonly RelationTuple[]
  readonly deletes: readonly RelationTuple[]
}

/** What a write has changed. A tuple that was there already, or was not there, counts in neither. */
export interface TuplesChanged {
  readonly written: number
  readonly deleted: number
  /** Of the tenant's tuples from now on: microseconds since the epoch, later than any before. */
  readonly version: number
}

/** Which tuples: those that agree in every part that is given. */
export interface TupleFilter {
  /** `type:id`, or all of a type, `type:`. */
  readonly object?: string | undefined
  /** Only with an object that has an id. */
  readonly relation?: string | undefined
  readonly subject?: string | undefined
}

export interface TupleQuery extends TupleFilter {
  /** At least 1. */
  readonly limit: number
  /** The last one of the page before. It need not be there any more. */
  readonly after?: RelationTuple | undefined
}

/**
 * Sorted by type, object and relation, and of these objects before usersets; with a `subject` asked for,
 * by object and relation.
 */
export interface TuplePage {
  readonly tuples: readonly RelationTuple[]
  /** Whether there are more. */
  readonly hasMore: boolean
}

/** Whom the tuples of one relation to one object name, in their written form. */
export interface NamedSubjects {
  /** At most {@link MAX_SUBJECTS_TOLD}. */
  readonly subjects: readonly string[]
  readonly hasMore: boolean
}

export interface SubjectsByRelation {
  /** As many as were asked for, in that order. */
  readonly named: readonly NamedSubjects[]
  /** All writes up to it are in what was told. 0: there was none. */
  readonly version: number
}

/**
 * Port: the tuples. A tenant's are apart from those of all others; null: those of callers without
 * one. Throws `Unavailable` for what it cannot tell or do. Does not check what it is given: whether
 * a tuple is written as one, whether the model permits it (`permitted.ts`), or how many there are.
 */
export interface RelationTuples {
  /**
   * All or nothing, and seen by every check that begins after it. Repeated, it changes nothing but
   * the version. An `Unavailable` leaves open whether it was done; it is not done later.
   */
  write(tenant: string | null, changes: TupleChanges): Promise<TuplesChanged>
  /**
   * A page. A tuple that is there throughout is on exactly one, whatever comes and goes meanwhile.
   * Throws `TypeError` for an `after` that the query does not let through.
   */
  read(tenant: string | null, query: TupleQuery): Promise<TuplePage>
  /** Whom the tuples of each of these relations to an object name; nobody is looked up further. */
  subjectsOf(
    tenant: string | null,
    object: string,
    relations: readonly string[],
  ): Promise<SubjectsByRelation>
}

/** Whether a tuple is among those that a filter lets through. */
export function isAmong(tuple: RelationTuple, { object, relation, subject }: TupleFilter): boolean {
  const isOfObject =
    object === undefined ||
    (object.endsWith(':') ? tuple.object.startsWith(object) : tuple.object === object)
  return (
    isOfObject &&
    (relation === undefined || tuple.relation === relation) &&
    (subject === undefined || tuple.subject === subject)
  )
}
