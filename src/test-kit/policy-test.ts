/** Tests a policy by a table of requests and their expected decisions. */
import type { Policy } from '../policy/policy.ts'
import type { ProblemCode } from '../problems/problem.ts'
import type { Decision } from './decision.ts'
import { type PolicyTesterOptions, policyTester, type TestedRequest } from './policy-tester.ts'

/** One row: a request to a new gateway, so that no row affects the limits of another. */
export interface PolicyTestRow extends TestedRequest {
  /** Method and path: `GET /orders/1`. */
  readonly request: string
  /** `allowed`, the code of the problem document, or the status of the response. */
  readonly expect: 'allowed' | ProblemCode | number
}

/**
 * Tests each row by itself. Throws one error that lists all rows with another decision than the
 * expected one. Works in every test runner.
 *
 * @example
 * ```ts
 * test('the policy', () =>
 *   policyTest(policy, [
 *     { request: 'GET /orders', expect: 'missing_token' },
 *     { request: 'GET /orders', as: { roles: ['reader'] }, expect: 'allowed' },
 *   ]))
 * ```
 */
export async function policyTest(
  policy: Policy,
  rows: readonly PolicyTestRow[],
  options?: PolicyTesterOptions,
): Promise<void> {
  const failures: string[] = []
  for (const [index, { request, expect: expected, ...parts }] of rows.entries()) {
    const decision = await policyTester(policy, options).request(request, parts)
    if (isExpected(decision, expected)) continue
    const by = parts.as === undefined ? '' : ` as ${JSON.stringify(parts.as)}`
    failures.push(
      `row ${index + 1}, ${request}${by}: expected ${expected}, got ${textOf(decision)}`,
    )
  }
  if (failures.length > 0) throw new Error(`The policy decides otherwise:\n${failures.join('\n')}`)
}

function isExpected(decision: Decision, expected: PolicyTestRow['expect']): boolean {
  if (typeof expected === 'number') return decision.status === expected
  return expected === 'allowed' ? decision.allowed : !decision.allowed && decision.code === expected
}

function textOf(decision: Decision): string {
  const { status, reason } = decision
  return decision.allowed ? `allowed (${status})` : `${decision.code} (${status}, ${reason})`
}
