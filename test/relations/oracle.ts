/**
 * Whether a relation holds, as docs/decisions/0042 says it: the specification of the check, written
 * as plainly as can be. It remembers nothing and cuts nothing short, so it is slow: for small graphs.
 */
import type {
  RelationDecision,
  RelationQuery,
  Undecided,
} from '../../src/relations/decision-point.ts'
import type { DirectType, RelationModel, Userset } from '../../src/relations/model.ts'
import {
  type ObjectReference,
  parseObject,
  parseSubject,
  type RelationTuple,
  type SubjectReference,
} from '../../src/relations/tuple.ts'

export interface OracleOptions {
  /** Tuples that may be followed one after the other. Default: any number. */
  readonly maxDepth?: number
  /** Relations that are looked at before it gives up, by throwing {@link TooLarge}. */
  readonly maxSteps?: number
}

/** Nothing is wrong: this graph has more ways through it than there is time for. */
export class TooLarge extends Error {}

/** An outcome, and what it hangs on. */
interface Finding {
  readonly outcome: RelationDecision['outcome']
  readonly why?: Undecided
  /**
   * The outermost relation under evaluation (its place on the path) that was taken to be denied here
   * because the path came back to it. Infinity: none was.
   */
  readonly hangsOn: number
}

const ALLOWED: Finding = { outcome: 'allowed', hangsOn: Infinity }
const DENIED: Finding = { outcome: 'denied', hangsOn: Infinity }
const TOO_DEEP: Finding = { outcome: 'unknown', why: 'max_depth_exceeded', hangsOn: Infinity }

export interface OracleAnswer {
  readonly decision: RelationDecision
  /** Somewhere on its ways it was led too far, whether that mattered in the end or not. */
  readonly isCut: boolean
}

/** Decides over a query by the tuples that are given. */
export function decide(
  model: RelationModel,
  tuples: readonly RelationTuple[],
  { object, relation, subject, contextualTuples }: RelationQuery,
  { maxDepth = Infinity, maxSteps = Infinity }: OracleOptions = {},
): OracleAnswer {
  const asked = parseSubject(subject)
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
    // What hangs on nothing but this is as it is.
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
        if (named.some(isAsked)) return ALLOWED
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

  /** A wildcard stands for every object of its type, and for no userset. */
  function isAsked(one: SubjectReference): boolean {
    const isSame = one.type === asked?.type && one.relation === asked.relation
    const isAll = one.id === '*' && asked?.relation === undefined
    return isSame && (one.id === asked.id || isAll)
  }

  const at = parseObject(object)
  const { outcome, why } = at === undefined ? DENIED : holds(at, relation, [], 0)
  const decision = (why === undefined ? { outcome } : { outcome, why }) as RelationDecision
  return { decision, isCut }
}

/** What the model does not permit is as if it were not there. */
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

/** Of several reasons not to know, this is told before the others. */
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

/** Of several denials, that one counts which hangs on least. */
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
  // It is denied only if what it is part of is: it would hold only if it did not.
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
