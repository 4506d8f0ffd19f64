/** The middlewares, and what they use: verifiers, stores, sinks, checks. */

export {
  type AuthenticationFailures,
  createAuthenticationFailures,
  type FailureCounter,
} from './abuse/authentication-failures.ts'
export {
  type Abuse,
  type BanDefinition,
  DEFAULT_BANS,
  DEFAULT_EXEMPT,
  DEFAULT_FAILURES,
} from './abuse/definition.ts'
export { createFailureCounter } from './abuse/redis/authentication-failures.ts'
export { createViolationCounter } from './abuse/redis/violations.ts'
export { createViolations, type ViolationCounter, type Violations } from './abuse/violations.ts'
export { type Admission, createAdmission } from './admission/admission.ts'
export type { LeaseTerms } from './admission/lease.ts'
export type { LimitEngine, LimitRule, OnUnavailable, RateLimit } from './admission/limit.ts'
export { limitKeyOf } from './admission/limit-key.ts'
export type { LimitControls } from './admission/limit-override.ts'
export { createLimitControls } from './admission/redis/limit-overrides.ts'
export { createUpstashAdmissionStore } from './admission/redis/store.ts'
export type { AdmissionStore } from './admission/store.ts'
export { batchingAuditSink } from './audit/batching-sink.ts'
export { type AuditEvent, type AuditSink, auditEventSchema } from './audit/event.ts'
export { createAuditQueue } from './audit/queue/audit-queue.ts'
export { createAuditOverflow } from './audit/redis/overflow.ts'
export { consoleAuditSink } from './audit/truncate.ts'
export { type Authorizer, createAuthorizer } from './authorization/permissions.ts'
export { Denied, Misconfigured, Unavailable } from './errors.ts'
export { createAddressList } from './http/address-list.ts'
export type { Principal, TokenVerifier } from './identity/principal.ts'
export { tokenIdHash } from './identity/token-id.ts'
export type {
  InspectDefinition,
  JsonRpcDefinition,
  JsonRpcMethod,
  McpTool,
} from './inspection/definition.ts'
export type { SignatureJudge } from './inspection/judge.ts'
export type { SignaturesDefinition } from './inspection/signatures/definition.ts'
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
export { type ThrottleOptions, throttle } from './middleware/throttle.ts'
export { type TraceRequestsOptions, traceRequests } from './middleware/trace-requests.ts'
export { type ValidateOptions, validate } from './middleware/validate.ts'
export { DEFAULT_TOKENS, type TokensDefinition } from './oauth/tokens-definition.ts'
export { createSpanExporter, type SpanExporter } from './observability/tracing/exporter.ts'
export { coalescedOrigin } from './origin/coalesced-origin.ts'
export { guardedOrigin } from './origin/guarded-origin.ts'
export { createOrigin, type Origin } from './origin/origin.ts'
export type { LimitBy } from './policy/definition.ts'
export type { PolicyLimit } from './policy/policy.ts'
export type { PolicyRelations } from './policy/relations.ts'
export type { Problem, ProblemCode } from './problems/problem.ts'
export type { Denial } from './problems/reasons.ts'
export type { RedisConnection } from './redis/connection.ts'
export { createKeys, DEFAULT_KEYS, type RedisKeys } from './redis/keys.ts'
export { createRedisRest } from './redis/rest.ts'
export { createRelationCache, type RelationCache } from './relations/cache.ts'
export { createRelationChecker, type RelationChecker } from './relations/checker.ts'
export { compileModel } from './relations/compile-model.ts'
export { decodeConsistency, encodeConsistency } from './relations/consistency.ts'
export type { PolicyDecisionPoint } from './relations/decision-point.ts'
export { createAuthzenDecisionPoint } from './relations/decision-points/authzen.ts'
export { createOpenfgaDecisionPoint } from './relations/decision-points/openfga.ts'
export type {
  ContextualTupleDefinition,
  ExternalDecisionPoint,
  RelationDemand,
  RelationsDefinition,
} from './relations/definition.ts'
export { ModelInvalid, type RelationModel } from './relations/model.ts'
export {
  createRedisDecisionPoint,
  createRelationCheck,
  type RelationCheck,
} from './relations/redis/check.ts'
export { createRelationTuples } from './relations/redis/tuples.ts'
export { createRelationRule, type RelationRule } from './relations/rule.ts'
export type { RelationTuples } from './relations/store.ts'
export { escapeId, formatTuple, parseTuple, type RelationTuple } from './relations/tuple.ts'
export { createRevocations } from './revocation/redis/revocations.ts'
export type { Revocations } from './revocation/revocation.ts'
export { healthRoutes, type ReadinessCheck } from './routes/health.ts'
export { type ProxyOptions, proxy } from './routes/proxy.ts'
export { type WellKnownOptions, wellKnownRoutes } from './routes/well-known.ts'
export type { AccessGrant, IssueOptions, TokenIssuer } from './tokens/access-grant.ts'
export { newApiKey } from './tokens/api-key.ts'
export { type AssertionSigner, createAssertionSigner } from './tokens/assertion.ts'
export { bearerToken } from './tokens/credential.ts'
export { createDpopVerifier, type DpopVerifier, nonceSecretOf } from './tokens/dpop.ts'
export { createReferenceStore } from './tokens/redis/references.ts'
export {
  credentialHash,
  type Reference,
  type ReferenceRecord,
  type ReferenceStore,
} from './tokens/reference.ts'
export { createReferences, type References } from './tokens/references.ts'
export { parseSigningKeys, type SigningJwk } from './tokens/signing-keys.ts'
export { createTokenIssuer } from './tokens/token-issuer.ts'
export {
  createTokenSources,
  type TokenSources,
  type TokenSourcesOptions,
} from './tokens/token-sources.ts'
export { createTokenVerifier } from './tokens/verifier.ts'
export type { IssuerConfig } from './validators/issuer.ts'
export type { Mode } from './validators/mode.ts'
export type { TokenSource } from './validators/token-source.ts'
export { parseConfig, type WholeConfig as Config } from './validators/whole-environment.ts'
