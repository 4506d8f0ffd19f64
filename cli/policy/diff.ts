/** The changes between two policies, and the callers that they affect. */
import { type Authorizer, createAuthorizer } from '../../src/access/permissions.ts'
import { coversHost } from '../../src/http/host.ts'
import { shadows } from '../../src/http/path-pattern.ts'
import type { Policy, PolicyRoute } from '../../src/policy/policy.ts'
import { nameOfRoute } from '../../src/policy/route.ts'
import { type Change, changeOf, list } from './change.ts'
import { changesInCalls } from './diff-calls.ts'
import { changesInLimits, changesInPolicy } from './diff-policy.ts'
import { changesInRoute } from './diff-route.ts'
import { admits, callersOf } from './matrix.ts'

/**
 * Returns the changes from one policy to another. Routes are compared by the requests that they match, so
 * a removed row below a wildcard is compared with the wildcard. Does NOT see inside functions: custom
 * keys of limits, refinements and transforms of schemas.
 */
export function diffPolicies(before: Policy, after: Policy): readonly Change[] {
  return [
    ...changesInRoutes(before, after),
    ...changesInLimits(before.limits, after.limits),
    ...changesInPolicy(before, after),
  ]
}

function* changesInRoutes(before: Policy, after: Policy): Generator<Change> {
  const names = [...new Set([...callersOf(before).keys(), ...callersOf(after).keys()])]
  const callers = callersOf({ roles: new Map(names.slice(2).map((name) => [name, []])) })
  const [authorizeBefore, authorizeAfter] = [before, after].map(({ roles }) =>
    createAuthorizer(roles),
  )
  if (authorizeBefore === undefined || authorizeAfter === undefined) return
  for (const pattern of patternsOf(before, after)) {
    const [one, another] = [rowFor(before, pattern), rowFor(after, pattern)]
    const route = nameOfRoute(pattern)
    const admittedTo = (row: PolicyRoute | undefined, authorize: Authorizer) =>
      row === undefined
        ? []
        : [...callers].flatMap(([name, caller]) => (admits(row, caller, authorize) ? [name] : []))
    const how = one === undefined ? ' (new route)' : another === undefined ? ' (route removed)' : ''
    const admitted = {
      was: admittedTo(one, authorizeBefore),
      is: admittedTo(another, authorizeAfter),
    }
    yield* changesOfCallers(route, admitted, how)
    const sides = {
      before: { route: one, authorize: authorizeBefore },
      after: { route: another, authorize: authorizeAfter },
    }
    yield* changesInCalls(route, sides, callers, changesOfCallers)
    if (one !== undefined && another !== undefined) yield* changesInRoute(route, one, another)
  }
}

/** Yields the callers that gain or lose a route, or a call of one. `how` is empty if both policies have it. */
function* changesOfCallers(
  of: string,
  { was, is }: { readonly was: readonly string[]; readonly is: readonly string[] },
  how: string,
): Generator<Change> {
  const gain = is.filter((name) => !was.includes(name))
  const lose = was.filter((name) => !is.includes(name))
  if (gain.length > 0)
    yield { ...changeOf('widening', of, `${list(gain)} ${verb(gain, 'gain')} ${of}${how}`), gain }
  if (lose.length > 0)
    yield { ...changeOf('narrowing', of, `${list(lose)} ${verb(lose, 'lose')} ${of}${how}`), lose }
  if (how !== '' && gain.length + lose.length === 0)
    yield changeOf('neutral', of, `${of}${how}: no role may call it`)
}

const verb = (names: readonly string[], word: string) => (names.length === 1 ? `${word}s` : word)

type Pattern = Pick<PolicyRoute, 'method' | 'host' | 'path'>

/** Returns the patterns of both policies. Names of parameters do not distinguish patterns. */
function patternsOf(before: Policy, after: Policy): Iterable<Pattern> {
  const patterns = new Map<string, Pattern>()
  for (const route of [...before.routes, ...after.routes])
    patterns.set(nameOfRoute(route).replace(/:\w+/g, ':'), route)
  return patterns.values()
}

/** Returns the row that decides every request of a pattern. */
function rowFor({ routes }: Policy, { method, host, path }: Pattern): PolicyRoute | undefined {
  return routes.find(
    (row) =>
      row.method === method &&
      coversHost(row.host, host) &&
      (row.path === path || shadows(row.path, path)),
  )
}
