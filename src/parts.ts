/** The middlewares, and what they use: verifiers, stores, sinks, checks. */

export {
  type AuthenticationFailures,
  createAuthenticationFailures,
  type FailureCounter,
} from './access/abuse/authentication-failures.ts'
export {
  type Abuse,
  type BanDefinition,
  DEFAULT_BANS,
  DEFAULT_EXEMPT,
  DEFAULT_FAILURES,
} from './access/abuse/definition.ts'
export { createFailureCounter } from './access/abuse/redis/authentication-failures.ts'
export { createViolationCounter } from './access/abuse/redis/violations.ts'
export {
  createViolations,
  type ViolationCounter,
  type Violations,
} from './access/abuse/violations.ts'
export { type Admission, createAdmission } from './access/admission/admission.ts'
export type { LeaseTerms } from './access/admission/lease.ts'
export type { LimitEngine, LimitRule, OnUnavailable, RateLimit } from './access/admission/limit.ts'
export { limitKeyOf } from './access/admission/limit-key.ts'
export type { LimitControls } from './access/admission/limit-override.ts'
export { createLimitControls } from './access/admission/redis/limit-overrides.ts'
export { createRedisAdmissionStore as createUpstashAdmissionStore } from './access/admission/redis/store.ts'
export type { AdmissionStore } from './access/admission/store.ts'
export { type Authorizer, createAuthorizer } from './access/permissions.ts'
export type { Principal, TokenVerifier } from './access/principal.ts'
export { createRelationCache, type RelationCache } from './access/relations/cache.ts'
export { createRelationChecker, type RelationChecker } from './access/relations/checker.ts'
export { compileModel } from './access/relations/compile-model.ts'
export { decodeConsistency, encodeConsistency } from './access/relations/consistency.ts'
export type { PolicyDecisionPoint } from './access/relations/decision-point.ts'
export type {
  ContextualTupleDefinition,
  ExternalDecisionPoint,
  RelationDemand,
  RelationsDefinition,
} from './access/relations/definition.ts'
export { ModelInvalid, type RelationModel } from './access/relations/model.ts'
export {
  createRedisDecisionPoint,
  createRelationCheck,
  type RelationCheck,
} from './access/relations/redis/check.ts'
export { createRelationTuples } from './access/relations/redis/tuples.ts'
export { createRelationRule, type RelationRule } from './access/relations/rule.ts'
export type { RelationTuples } from './access/relations/store.ts'
export { escapeId, formatTuple, parseTuple, type RelationTuple } from './access/relations/tuple.ts'
export { createRevocations } from './access/revocation/redis/revocations.ts'
export type { Revocations } from './access/revocation/revocation.ts'
export { tokenIdHash } from './access/token-id.ts'
export type { AccessGrant, IssueOptions, TokenIssuer } from './access/tokens/access-grant.ts'
export { newApiKey } from './access/tokens/api-key.ts'
export { type AssertionSigner, createAssertionSigner } from './access/tokens/assertion.ts'
export { bearerToken } from './access/tokens/credential.ts'
export { createDpopVerifier, type DpopVerifier, nonceSecretOf } from './access/tokens/dpop.ts'
export { createReferenceStore } from './access/tokens/redis/references.ts'
export {
  credentialHash,
  type Reference,
  type ReferenceRecord,
  type ReferenceStore,
} from './access/tokens/reference.ts'
export { createReferences, type References } from './access/tokens/references.ts'
export { parseSigningKeys, type SigningJwk } from './access/tokens/signing-keys.ts'
export { createTokenIssuer } from './access/tokens/token-issuer.ts'
export {
  createTokenSources,
  type TokenSources,
  type TokenSourcesOptions,
} from './access/tokens/token-sources.ts'
export { createTokenVerifier } from './access/tokens/verifier.ts'
export { batchingAuditSink } from './audit/batching-sink.ts'
export type { AuditEvent, AuditSink } from './audit/event.ts'
export { auditEventSchema } from './audit/event-schema.ts'
export { createAuditQueue } from './audit/queue/audit-queue.ts'
export { createAuditOverflow } from './audit/redis/overflow.ts'
export { consoleAuditSink } from './audit/truncate.ts'
export { Denied, Misconfigured, Unavailable } from './errors.ts'
export { createAuthzenDecisionPoint } from './features/authzen/decision-point.ts'
export { parseConfig, type WholeConfig as Config } from './features/environment.ts'
export { createOpenfgaDecisionPoint } from './features/openfga/decision-point.ts'
export { createSpanExporter, type SpanExporter } from './features/otlp/exporter.ts'
export { type TraceRequestsOptions, traceRequests } from './features/otlp/trace-requests.ts'
export type { SignaturesDefinition } from './features/signatures/definition.ts'
export { createAddressList } from './http/address-list.ts'
export type {
  InspectDefinition,
  JsonRpcDefinition,
  JsonRpcMethod,
  McpTool,
} from './inspection/definition.ts'
export type { SignatureJudge } from './inspection/judge.ts'
export { type Breakers, createBreakers } from './isolate/breakers.ts'
export {
  type CircuitBreaker,
  createCircuitBreaker,
  passiveBreakerOf,
} from './isolate/circuit-breaker.ts'
export { type AdmitOptions, admit } from './middleware/admit.ts'
export { type AuditOptions, audit } from './middleware/audit.ts'
export { type AuthenticateOptions, authenticate } from './middleware/authenticate.ts'
export { type AuthorizeOptions, authorize } from './middleware/authorize.ts'
export { type BanOffendersOptions, banOffenders } from './middleware/ban-offenders.ts'
export { canonicalPath } from './middleware/canonical-path.ts'
export { clientAddress } from './middleware/client-address.ts'
export * from './middleware/context.ts'
export { drainOnRefusal } from './middleware/drain-on-refusal.ts'
export { type InspectOptions, inspect } from './middleware/inspect.ts'
export {
  type LeaveAuthorizationOptions,
  leaveAuthorization,
} from './middleware/leave-authorization.ts'
export { type LimitBodyOptions, limitBody } from './middleware/limit-body.ts'
export { type ProblemOptions, problemHandler } from './middleware/problem-handler.ts'
export {
  createReadmission,
  type Readmission,
  type ReadmitOptions,
  readmit,
} from './middleware/readmit.ts'
export type { RelationOptions } from './middleware/relation.ts'
export { type RequestIdOptions, requestId } from './middleware/request-id.ts'
export { type SanitizeHeadersOptions, sanitizeHeaders } from './middleware/sanitize-headers.ts'
export { type ServerTimingOptions, serverTiming } from './middleware/server-timing.ts'
export { type ShedLoadOptions, shedLoad } from './middleware/shed-load.ts'
export { type StepUpOptions, stepUp } from './middleware/step-up.ts'
export { type ThrottleOptions, throttle } from './middleware/throttle.ts'
export { type ValidateOptions, validate } from './middleware/validate.ts'
export { coalescedOrigin } from './origin/coalesced-origin.ts'
export { guardedOrigin } from './origin/guarded-origin.ts'
export { createOrigin, type Origin } from './origin/origin.ts'
export type { LimitBy } from './policy/definition.ts'
export type { PolicyLimit } from './policy/policy.ts'
export type { PolicyRelations } from './policy/relations.ts'
export { DEFAULT_TOKENS, type TokensDefinition } from './policy/tokens.ts'
export type { Problem, ProblemCode } from './problems/problem.ts'
export type { Denial } from './problems/reasons.ts'
export type { RedisConnection } from './redis/connection.ts'
export { createKeys, DEFAULT_KEYS, type RedisKeys } from './redis/keys.ts'
export { createRedisRest } from './redis/rest.ts'
export { healthRoutes, type ReadinessCheck } from './routes/health.ts'
export { type ProxyOptions, proxy } from './routes/proxy.ts'
export { type WellKnownOptions, wellKnownRoutes } from './routes/well-known.ts'
export type { IssuerConfig } from './validators/issuer.ts'
export type { Mode } from './validators/mode.ts'
export { ruleOf } from './validators/rule.ts'
export type { TokenSource } from './validators/token-source.ts'
