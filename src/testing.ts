/** Tools for tests of a policy and of a guarded app: `portcullis/testing`. Works in any runner. */

export type {
  ExplainedStage,
  Explanation,
  ForwardedRequest,
  StageOutcome,
} from './explanation/explanation.ts'
export type { Allowed, Decision, OriginRequest, Refused } from './test-kit/decision.ts'
export {
  createIssuer,
  type Issuer,
  type IssuerEntry,
  type IssuerOptions,
  type TokenOptions,
} from './test-kit/issuer.ts'
export {
  type PolicyTestCounts,
  PolicyTestError,
  type PolicyTestFailure,
  type PolicyTestReport,
  policyTest,
} from './test-kit/policy-test.ts'
export type { PolicyTestRow, PolicyTestTable } from './test-kit/policy-test-table.ts'
export {
  type PolicyTester,
  type PolicyTesterOptions,
  policyTester,
} from './test-kit/policy-tester.ts'
export type {
  Caller,
  TestedApiKey,
  TestedPlan,
  TestedRequest,
  TestedRevocation,
} from './test-kit/tested-request.ts'
