/** The changes between two policies, and the callers that they affect. */
import { createAuthorizer } from '../../src/authorization/permissions.ts'
import { coversHost } from '../../src/http/host.ts'
import { shadows } from '../../src/http/path-pattern.ts'
import type { Policy, PolicyRoute } from '../../src/policy/policy.ts'
import { nameOfRoute } from '../../src/policy/route.ts'
import { type Change, changeOf, list } from './change.ts'
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
    const gain: string[] = []
    const lose: string[] = []
    for (const [name, caller] of callers) {
      const was = one !== undefined && admits(one, caller, authorizeBefore)
      const is = another !== undefined && admits(another, caller, authorizeAfter)
      if (is && !was) gain.push(name)
      if (was && !is) lose.push(name)
    }
    const how = one === undefined ? ' (new route)' : another === undefined ? ' (route removed)' : ''
    if (gain.length > 0)
      yield {
        ...changeOf('widening', route, `${list(gain)} ${verb(gain, 'gain')} ${route}${how}`),
        gain,
      }
    if (lose.length > 0)
      yield {
        ...changeOf('narrowing', route, `${list(lose)} ${verb(lose, 'lose')} ${route}${how}`),
        lose,
      }
    if (how !== '' && gain.length + lose.length === 0)
      yield changeOf('neutral', route, `${route}${how}: no role may call it`)
    if (one !== undefined && another !== undefined) yield* changesInRoute(route, one, another)
  }
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
