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
  type PolicyTestReport,
  type PolicyTestRow,
  policyTest,
} from './test-kit/policy-test.ts'
export {
  type Caller,
  type PolicyTester,
  type PolicyTesterOptions,
  policyTester,
  type TestedApiKey,
  type TestedPlan,
  type TestedRequest,
  type TestedRevocation,
} from './test-kit/policy-tester.ts'
