/**
 * The specification of the check (docs/decisions/0042), in the simplest possible form. It has no
 * cache and no shortcuts, so it is slow and suits small graphs only.
 */
import type {
  RelationDecision,
  RelationQuery,
  Undecided,
} from '../../../src/access/relations/decision-point.ts'
import type { DirectType, RelationModel, Userset } from '../../../src/access/relations/model.ts'
import {
  type ObjectReference,
  parseObject,
  parseSubject,
  type RelationTuple,
  type SubjectReference,
} from '../../../src/access/relations/tuple.ts'

export interface OracleOptions {
  /** Maximum number of tuples on a path. Default: unlimited. */
  readonly maxDepth?: number
  /** Maximum number of visited relations; above it, {@link TooLarge} is thrown. */
  readonly maxSteps?: number
}

/** Not an error of the check: this graph has too many paths to visit all of them. */
export class TooLarge extends Error {}

/** An outcome and what it depends on. */
interface Finding {
  readonly outcome: RelationDecision['outcome']
  readonly why?: Undecided
  /**
   * The outermost relation under evaluation (its index on the path) that was assumed to be denied
   * because the path returned to it. Infinity: none.
   */
  readonly hangsOn: number
}

const ALLOWED: Finding = { outcome: 'allowed', hangsOn: Infinity }
const DENIED: Finding = { outcome: 'denied', hangsOn: Infinity }
const TOO_DEEP: Finding = { outcome: 'unknown', why: 'max_depth_exceeded', hangsOn: Infinity }

export interface OracleAnswer {
  readonly decision: RelationDecision
  /** A path was cut at the depth limit, whether that mattered for the outcome or not. */
  readonly isCut: boolean
}

/** Decides a query by the given tuples. */
export function decide(
  model: RelationModel,
  tuples: readonly RelationTuple[],
  { object, relation, subject, contextualTuples }: RelationQuery,
  { maxDepth = Infinity, maxSteps = Infinity }: OracleOptions = {},
): OracleAnswer {
  const wanted = parseSubject(subject)
  const all = [...tuples, ...contextualTuples].filter((tuple) => isPermitted(model, tuple))
  let steps = 0
  let isCut = false

  /** `path`: the relations under evaluation, outermost first. `hops`: tuples that led here. */
  function holds(
    at: ObjectReference,
    name: string,
    path: readonly string[],
    hops: number,
  ): Finding {
    steps += 1
    if (steps > maxSteps) throw new TooLarge()
    const definition = model.types.get(at.type)?.get(name)
    if (definition === undefined) return DENIED
    const node = `${at.type}:${at.id}#${name}`
    if (node === subject) return ALLOWED
    if (path.includes(node)) return { outcome: 'denied', hangsOn: path.indexOf(node) }
    const found = evaluate(definition.userset, at, name, [...path, node], hops)
    // A result that depends only on this relation is final.
    return { ...found, hangsOn: found.hangsOn === path.length ? Infinity : found.hangsOn }
  }

  function evaluate(
    userset: Userset,
    at: ObjectReference,
    name: string,
    path: readonly string[],
    hops: number,
  ): Finding {
    const of = (part: Userset) => evaluate(part, at, name, path, hops)
    const follow = (next: ObjectReference, relation: string) => {
      if (hops < maxDepth) return holds(next, relation, path, hops + 1)
      isCut = true
      return TOO_DEEP
    }
    switch (userset.kind) {
      case 'direct': {
        const named = subjectsOf(at, name)
        if (named.some(isRequested)) return ALLOWED
        return union(
          named.flatMap((one) => (one.relation === undefined ? [] : [follow(one, one.relation)])),
        )
      }
      case 'computed':
        return holds(at, userset.relation, path, hops)
      case 'tuple_to_userset':
        return union(
          subjectsOf(at, userset.tupleset)
            .filter(({ id, relation }) => relation === undefined && id !== '*')
            .filter(({ type }) => model.types.get(type)?.has(userset.computed))
            .map((one) => follow(one, userset.computed)),
        )
      case 'union':
        return union(userset.of.map(of))
      case 'intersection':
        return intersection(userset.of.map(of))
      case 'exclusion':
        return exclusion(of(userset.base), of(userset.subtract))
      default:
        return userset satisfies never
    }
  }

  const subjectsOf = (at: ObjectReference, name: string): readonly SubjectReference[] =>
    all.flatMap((tuple) => {
      const isIts = tuple.object === `${at.type}:${at.id}` && tuple.relation === name
      const one = isIts ? parseSubject(tuple.subject) : undefined
      return one === undefined ? [] : [one]
    })

  /** A wildcard matches every object of its type, and no userset. */
  function isRequested(one: SubjectReference): boolean {
    const isSame = one.type === wanted?.type && one.relation === wanted.relation
    const isAll = one.id === '*' && wanted?.relation === undefined
    return isSame && (one.id === wanted.id || isAll)
  }

  const at = parseObject(object)
  const { outcome, why } = at === undefined ? DENIED : holds(at, relation, [], 0)
  const decision = (why === undefined ? { outcome } : { outcome, why }) as RelationDecision
  return { decision, isCut }
}

/** A tuple that the model does not permit counts as absent. */
export function isPermitted(
  model: RelationModel,
  { object, relation, subject }: RelationTuple,
): boolean {
  const type = parseObject(object)?.type ?? ''
  const named = parseSubject(subject)
  if (named === undefined) return false
  const permits = (direct: DirectType): boolean =>
    direct.type === named.type &&
    (direct.kind === 'userset' ? direct.relation : undefined) === named.relation &&
    (direct.kind === 'wildcard') === (named.id === '*')
  return model.types.get(type)?.get(relation)?.directTypes.some(permits) ?? false
}

/** Of several reasons for "unknown", this one is reported first. */
const worst = (findings: readonly Finding[]): Undecided =>
  findings.some(({ why }) => why === 'max_depth_exceeded') ? 'max_depth_exceeded' : 'negated_cycle'

const lowest = (findings: readonly Finding[]) => Math.min(...findings.map(({ hangsOn }) => hangsOn))
const highest = (findings: readonly Finding[]) =>
  Math.max(...findings.map(({ hangsOn }) => hangsOn))

function union(findings: readonly Finding[]): Finding {
  if (findings.some(({ outcome }) => outcome === 'allowed')) return ALLOWED
  const hangsOn = lowest(findings)
  const isDenied = findings.every(({ outcome }) => outcome === 'denied')
  return isDenied ? { outcome: 'denied', hangsOn } : unknown(findings, hangsOn)
}

/** Of several denials, the one with the fewest dependencies counts. */
function intersection(findings: readonly Finding[]): Finding {
  const denials = findings.filter(({ outcome }) => outcome === 'denied')
  if (denials.length > 0) return { outcome: 'denied', hangsOn: highest(denials) }
  const isAllowed = findings.every(({ outcome }) => outcome === 'allowed')
  return isAllowed ? ALLOWED : unknown(findings, lowest(findings))
}

function exclusion(base: Finding, subtract: Finding): Finding {
  if (subtract.outcome === 'allowed') return DENIED
  if (base.outcome === 'denied') return base
  const hangsOn = lowest([base, subtract])
  // The cycle passes through an exclusion: the relation would hold only if it did not hold.
  const isNegated = subtract.outcome === 'denied' && subtract.hangsOn < Infinity
  const less: Finding = isNegated ? { outcome: 'unknown', why: 'negated_cycle', hangsOn } : subtract
  if (less.outcome === 'denied') return { ...base, hangsOn }
  return unknown([base, less], hangsOn)
}

const unknown = (findings: readonly Finding[], hangsOn: number): Finding => ({
  outcome: 'unknown',
  why: worst(findings),
  hangsOn,
})
