/** Tests a policy by a table of requests and their expected decisions. */
import type { Policy } from '../policy/policy.ts'
import type { ProblemCode } from '../problems/problem.ts'
import type { Decision } from './decision.ts'
import { type PolicyTesterOptions, renewableTester, type TestedRequest } from './policy-tester.ts'

/** One row: a request to a gateway that has seen no other, so that no row affects another one. */
export interface PolicyTestRow extends TestedRequest {
  /** Method and path: `GET /orders/1`. */
  readonly request: string
  /** `allowed`, the code of the problem document, or the status of the response. */
  readonly expect: 'allowed' | ProblemCode | number
}

/** How many rows of a test reached something. */
export interface PolicyTestCounts {
  readonly allowed: number
  readonly refused: number
}

/** What the rows of a test reached, and what no row reached. */
export interface PolicyTestReport {
  readonly rows: number
  /** Every route of the policy, as `GET /orders/:id`. A row without a route counts for none. */
  readonly routes: readonly (PolicyTestCounts & { readonly route: string })[]
  /** Every role of the policy. A row counts if its caller has the role and it reached a route. */
  readonly roles: readonly (PolicyTestCounts & { readonly role: string })[]
  /** The routes and the roles that no row reached. */
  readonly untested: { readonly routes: readonly string[]; readonly roles: readonly string[] }
  /** Such as `12 rows; 5 of 8 routes and 2 of 3 roles tested; not tested: DELETE /orders/:id, admin`. */
  readonly summary: string
}

/**
 * Tests each row by itself. Throws one error that lists all rows with another decision than the
 * expected one. Returns what the rows reached. Works in every test runner.
 *
 * @example
 * ```ts
 * test('the policy', async () => {
 *   const { untested } = await policyTest(policy, [
 *     { request: 'GET /orders', expect: 'missing_token' },
 *     { request: 'GET /orders', as: { roles: ['reader'] }, expect: 'allowed' },
 *   ])
 *   expect(untested.routes).toEqual([])
 * })
 * ```
 */
export async function policyTest(
  policy: Policy,
  rows: readonly PolicyTestRow[],
  options?: PolicyTesterOptions,
): Promise<PolicyTestReport> {
  const tester = renewableTester(policy, options)
  const failures: string[] = []
  const routes = countersOf(policy.routes.map(nameOf))
  const roles = countersOf(policy.roles.keys())
  for (const [index, { request, expect: expected, ...parts }] of rows.entries()) {
    await tester.renew()
    const decision = await tester.request(request, parts)
    const reached = routes.get(routeName(request, decision))
    if (reached !== undefined) {
      count(reached, decision)
      for (const role of new Set(parts.as?.roles)) count(roles.get(role), decision)
    }
    if (isExpected(decision, expected)) continue
    const by = parts.as === undefined ? '' : ` as ${JSON.stringify(parts.as)}`
    failures.push(
      `row ${index + 1}, ${request}${by}: expected ${expected}, got ${textOf(decision)}`,
    )
  }
  if (failures.length > 0) throw new Error(`The policy decides otherwise:\n${failures.join('\n')}`)
  return reportOf(rows.length, routes, roles)
}

type Counters = Map<string, { allowed: number; refused: number }>

const countersOf = (names: Iterable<string>): Counters =>
  new Map([...names].map((name) => [name, { allowed: 0, refused: 0 }]))

const nameOf = ({ method, path }: { readonly method: string; readonly path: string }): string =>
  `${method} ${path}`

/** HEAD is handled like GET. */
function routeName(request: string, { route }: Decision): string {
  const [method = ''] = request.split(' ')
  return nameOf({ method: method === 'HEAD' ? 'GET' : method, path: route ?? '' })
}

function count(counts: { allowed: number; refused: number } | undefined, decision: Decision): void {
  if (counts === undefined) return
  if (decision.allowed) counts.allowed += 1
  else counts.refused += 1
}

function reportOf(rows: number, routes: Counters, roles: Counters): PolicyTestReport {
  const untested = { routes: untestedIn(routes), roles: untestedIn(roles) }
  const tested = (of: Counters, names: readonly string[]) =>
    `${of.size - names.length} of ${of.size}`
  const missing = [...untested.routes, ...untested.roles]
  return {
    rows,
    routes: [...routes].map(([route, counts]) => ({ route, ...counts })),
    roles: [...roles].map(([role, counts]) => ({ role, ...counts })),
    untested,
    summary:
      `${rows} rows; ${tested(routes, untested.routes)} routes and ` +
      `${tested(roles, untested.roles)} roles tested` +
      (missing.length === 0 ? '' : `; not tested: ${missing.join(', ')}`),
  }
}

const untestedIn = (counters: Counters): readonly string[] =>
  [...counters].flatMap(([name, { allowed, refused }]) => (allowed + refused === 0 ? [name] : []))

function isExpected(decision: Decision, expected: PolicyTestRow['expect']): boolean {
  if (typeof expected === 'number') return decision.status === expected
  return expected === 'allowed' ? decision.allowed : !decision.allowed && decision.code === expected
}

function textOf(decision: Decision): string {
  const { status, reason } = decision
  return decision.allowed ? `allowed (${status})` : `${decision.code} (${status}, ${reason})`
}
