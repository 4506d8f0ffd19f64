/** Tools for tests of a policy and of a guarded app: `portcullis/testing`. Works in any runner. */

export type {
  ExplainedStage,
  Explanation,
  ForwardedRequest,
  StageOutcome,
} from '../gateway/explanation/explanation.ts'
export type { Allowed, Decision, OriginRequest, Refused } from './decision.ts'
export { type MemoryStoreOfGuards, type MemoryStoreOptions, memoryStore } from './guard-memory.ts'
export {
  createIssuer,
  type Issuer,
  type IssuerEntry,
  type IssuerOptions,
  type TokenOptions,
} from './issuer.ts'
export {
  type PolicyTestCounts,
  PolicyTestError,
  type PolicyTestFailure,
  type PolicyTestReport,
  policyTest,
} from './policy-test.ts'
export type { PolicyTestRow, PolicyTestTable } from './policy-test-table.ts'
export {
  type PolicyTester,
  type PolicyTesterOptions,
  policyTester,
} from './policy-tester.ts'
export type {
  Caller,
  TestedApiKey,
  TestedPlan,
  TestedRequest,
  TestedRevocation,
} from './tested-request.ts'
