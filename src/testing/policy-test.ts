/** Tests a policy by a table of requests and their expected decisions. */
import type { Explanation } from '../gateway/explanation/explanation.ts'
import type { Policy } from '../policy/policy.ts'
import { nameOfRoute } from '../policy/route.ts'
import { withSuggestion } from '../suggestions/did-you-mean.ts'
import type { Decision } from './decision.ts'
import {
  type PolicyTestRow,
  type PolicyTestTable,
  requireRow,
  requireTable,
} from './policy-test-table.ts'
import { type PolicyTesterOptions, renewableTester } from './policy-tester.ts'
import type { TestedRequest } from './tested-request.ts'

/** How many rows of a test reached something. */
export interface PolicyTestCounts {
  readonly allowed: number
  readonly refused: number
}

/** What the rows of a test reached, and what no row reached. */
export interface PolicyTestReport {
  readonly rows: number
  /** Every route of the policy, as `GET /orders/:id`, or `GET api.example.com/orders/:id`. A row without a route counts for none. */
  readonly routes: readonly (PolicyTestCounts & { readonly route: string })[]
  /** Every role of the policy. A row counts if its caller has the role and it reached a route. */
  readonly roles: readonly (PolicyTestCounts & { readonly role: string })[]
  /** The routes and the roles that no row reached. */
  readonly untested: { readonly routes: readonly string[]; readonly roles: readonly string[] }
  /** Such as `12 rows; 5 of 8 routes and 2 of 3 roles tested; not tested: DELETE /orders/:id, admin`. */
  readonly summary: string
}

/** A row with another decision than the expected one. */
export interface PolicyTestFailure {
  /** From 0. */
  readonly index: number
  readonly row: PolicyTestRow
  readonly decision: Decision
  /** Undefined for a path of the gateway itself, which no policy decides. */
  readonly explanation: Explanation | undefined
  /** The row, the two decisions, and why. */
  readonly text: string
}

/** Thrown for a table with failures. */
export class PolicyTestError extends Error {
  override readonly name = 'PolicyTestError'
  readonly failures: readonly PolicyTestFailure[]
  readonly report: PolicyTestReport

  constructor(failures: readonly PolicyTestFailure[], report: PolicyTestReport) {
    super(`The policy decides otherwise:\n${failures.map(({ text }) => text).join('\n')}`)
    this.failures = failures
    this.report = report
  }
}

/**
 * Tests each row by itself. Throws one `PolicyTestError` that lists all rows with another decision than
 * the expected one, and why. Throws `TypeError` for a row with a mistake. Returns what the rows
 * reached. Works in every test runner.
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
): Promise<PolicyTestReport>
/** Tests the table of a file for `portcullis policy test`. */
export async function policyTest(table: PolicyTestTable): Promise<PolicyTestReport>
export async function policyTest(
  policyOrTable: Policy | PolicyTestTable,
  given?: readonly PolicyTestRow[],
  options?: PolicyTesterOptions,
): Promise<PolicyTestReport> {
  const table: PolicyTestTable =
    'rows' in policyOrTable
      ? policyOrTable
      : { ...options, policy: policyOrTable, rows: given ?? [] }
  requireTable(table)
  const { policy, rows, ...rest } = table
  const tester = renewableTester(policy, rest)
  const failures: PolicyTestFailure[] = []
  const routes = countersOf(policy.routes.map(nameOfRoute))
  const roles = countersOf(policy.roles.keys())
  for (const [index, row] of rows.entries()) {
    requireRow(row, index)
    await tester.renew()
    const { request, expect: expected, ...parts } = row
    const decision = await tester.request(request, parts).catch(namingRow(index))
    const reached = routes.get(routeName(request, decision))
    if (reached !== undefined) {
      count(reached, decision)
      for (const role of new Set(rolesOf(row))) count(roles.get(role), decision)
    }
    if (isExpected(decision, expected)) continue
    await tester.renew()
    const explanation = await tester.explain(request, parts).catch(() => undefined)
    failures.push({
      index,
      row,
      decision,
      explanation,
      text: describeResult(index, row, decision, explanation) + listUnknownRoles(row, policy),
    })
  }
  const report = createReport(rows.length, routes, roles)
  if (failures.length > 0) throw new PolicyTestError(failures, report)
  return report
}

const rolesOf = ({ as, apiKey }: TestedRequest): readonly string[] => (as ?? apiKey)?.roles ?? []

const namingRow =
  (index: number) =>
  (error: Error): never => {
    if (error instanceof TypeError)
      throw new TypeError(`row ${index + 1}: ${error.message}`, { cause: error })
    throw error
  }

type Counters = Map<string, { allowed: number; refused: number }>

const countersOf = (names: Iterable<string>): Counters =>
  new Map([...names].map((name) => [name, { allowed: 0, refused: 0 }]))

/** Returns the name of the route that a row reached. HEAD is handled like GET. */
function routeName(request: string, { host = '', route }: Decision): string {
  const [method = ''] = request.split(' ')
  return `${method === 'HEAD' ? 'GET' : method} ${host}${route ?? ''}`
}

function count(counts: { allowed: number; refused: number } | undefined, decision: Decision): void {
  if (counts === undefined) return
  if (decision.allowed) counts.allowed += 1
  else counts.refused += 1
}

function createReport(rows: number, routes: Counters, roles: Counters): PolicyTestReport {
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

function describeResult(
  index: number,
  { request, name, as, apiKey, expect: expected }: PolicyTestRow,
  decision: Decision,
  explanation: Explanation | undefined,
): string {
  const { status, reason } = decision
  const caller = as ?? apiKey
  const by = caller === undefined ? '' : ` as ${JSON.stringify(caller)}`
  const label = name === undefined ? '' : ` (${name})`
  const got = decision.allowed ? `allowed (${status})` : `${decision.code} (${status}, ${reason})`
  const stage = explanation && decisiveStage(explanation)
  const why = stage === undefined ? '' : `\n  ${stage.stage}: ${stage.why}`
  return `row ${index + 1}${label}, ${request}${by}: expected ${expected}, got ${got}${why}`
}

/** Returns a line for each role of the caller that the policy does not have. */
function listUnknownRoles(row: PolicyTestRow, { roles }: Policy): string {
  return rolesOf(row)
    .filter((role) => !roles.has(role))
    .map((role) => withSuggestion(`\n  the policy has no role ${role}`, role, [...roles.keys()]))
    .join('')
}

/** Returns the stage that refused the request, or the one that would have had to. */
function decisiveStage({ decision, stages }: Explanation) {
  const last = stages.at(-1)
  return decision === 'allow' ? (stages.find(({ stage }) => stage === 'authorize') ?? last) : last
}
