/** What policy tests reached: the reports of several tables of the same or different policies. */
import type { PolicyTestCounts, PolicyTestReport } from '../../src/testing/index.ts'

/** How much of the routes, or of the roles, at least one row reached. */
export interface Reached {
  readonly total: number
  readonly tested: number
  /** Rounded down; 100 if there are none. */
  readonly percent: number
  readonly untested: readonly string[]
}

export interface Coverage {
  readonly routes: Reached
  readonly roles: Reached
  readonly counts: {
    readonly routes: PolicyTestReport['routes']
    readonly roles: PolicyTestReport['roles']
  }
}

/** Adds up the counts of all tables of a policy. Routes and roles of other policies are others. */
export function coverageOf(
  tested: readonly { readonly policy: unknown; readonly report: PolicyTestReport }[],
): Coverage {
  const policies = [...new Set(tested.map(({ policy }) => policy))]
  const perPolicy = policies.map((one) =>
    tested.flatMap(({ policy, report }) => (policy === one ? [report] : [])),
  )
  const routes = perPolicy.flatMap((reports) =>
    summed(
      reports.flatMap((report) => report.routes),
      ({ route }) => route,
    ),
  )
  const roles = perPolicy.flatMap((reports) =>
    summed(
      reports.flatMap((report) => report.roles),
      ({ role }) => role,
    ),
  )
  return {
    routes: reachedOf(routes, ({ route }) => route),
    roles: reachedOf(roles, ({ role }) => role),
    counts: { routes, roles },
  }
}

function summed<Counts extends PolicyTestCounts>(
  all: readonly Counts[],
  nameOf: (counts: Counts) => string,
): readonly Counts[] {
  const sums = new Map<string, Counts>()
  for (const counts of all) {
    const sum = sums.get(nameOf(counts))
    const { allowed, refused } = counts
    sums.set(
      nameOf(counts),
      sum === undefined
        ? counts
        : { ...sum, allowed: sum.allowed + allowed, refused: sum.refused + refused },
    )
  }
  return [...sums.values()]
}

function reachedOf<Counts extends PolicyTestCounts>(
  all: readonly Counts[],
  nameOf: (counts: Counts) => string,
): Reached {
  const untested = all.filter(({ allowed, refused }) => allowed + refused === 0).map(nameOf)
  const total = all.length
  const tested = total - untested.length
  return {
    total,
    tested,
    percent: total === 0 ? 100 : Math.floor((tested / total) * 100),
    untested,
  }
}
