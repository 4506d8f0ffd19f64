/** The policy, and the gateway that enforces it. */

export type { AbuseDefinition, BanDefinition } from './access/abuse/definition.ts'
export type { LeaseTerms } from './access/admission/lease.ts'
export type { LimitEngine, LimitRule, OnUnavailable } from './access/admission/limit.ts'
export type { Principal } from './access/principal.ts'
export type {
  ContextualTupleDefinition,
  ExternalDecisionPoint,
  RelationDemand,
  RelationsDefinition,
} from './access/relations/definition.ts'
export type { AuditEvent, AuditSink } from './audit/event.ts'
export { Denied, Misconfigured, Unavailable } from './errors.ts'
export type { SignaturesDefinition } from './features/signatures/definition.ts'
export { composeServices, type GatewayEnv, type Services } from './gateway/compose-services.ts'
export { createGateway, type Gateway } from './gateway/create-gateway.ts'
export type { Feature as GatewayFeature } from './gateway/feature.ts'
export { refuseAll } from './gateway/refuse-all.ts'
export { type Runtime, WORKERS } from './gateway/runtime.ts'
export type {
  InspectDefinition,
  JsonRpcDefinition,
  JsonRpcMethod,
  McpTool,
} from './inspection/definition.ts'
export type { SignatureJudge } from './inspection/judge.ts'
export type { OriginRouting } from './origin/definition.ts'
export type { Origin } from './origin/origin.ts'
export type {
  InputSchemas,
  LimitBy,
  LimitDefinition,
  LimitSubject,
  PermissionDemand,
  PolicyDefinition,
  RevocationDefinition,
  RouteDefinition,
} from './policy/definition.ts'
export { type GroupDefaults, group } from './policy/group.ts'
export { defineIssuers } from './policy/issuers.ts'
export { definePolicy, type Policy, type PolicyLimit, type PolicyRoute } from './policy/policy.ts'
export type { RelationsFeature } from './policy/relations.ts'
export type { TokensDefinition } from './policy/tokens.ts'
export type { Problem, ProblemCode } from './problems/problem.ts'
export type { Denial, Dependency, Fault } from './problems/reasons.ts'
export type { IssuerConfig } from './validators/issuer.ts'
export type { IssuerInput } from './validators/issuer-input.ts'
export type { Mode } from './validators/mode.ts'
export type { Method } from './validators/policy.ts'
export type { TokenSource } from './validators/token-source.ts'
