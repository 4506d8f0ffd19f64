/** The public surface of Portcullis. */

export {
  type Abuse,
  type AbuseDefinition,
  type BanDefinition,
  DEFAULT_BANS,
  DEFAULT_EXEMPT,
  DEFAULT_FAILURES,
  type FailureLimit,
} from './admission/abuse-definition.ts'
export { createAddressList } from './admission/address-list.ts'
export {
  type Admission,
  type AdmissionOptions,
  type AdmissionRequest,
  type AdmissionVerdict,
  createAdmission,
} from './admission/admission.ts'
export {
  type AuthenticationFailures,
  type AuthenticationFailuresOptions,
  createAuthenticationFailures,
  type FailureCount,
  type FailureCounter,
} from './admission/authentication-failures.ts'
export type { LeaseAsk, LeaseGrant, LeaseTerms } from './admission/lease.ts'
export type { LimitEngine, LimitRule, OnUnavailable, RateLimit } from './admission/limit.ts'
export { limitKeyOf } from './admission/limit-key.ts'
export type {
  DeferredLimit,
  ReferenceRequest,
  ReferenceVerdict,
} from './admission/reference-admission.ts'
export type { CutOffKind } from './admission/revocation.ts'
export type {
  AdmissionFacts,
  AdmissionQuery,
  AdmissionStore,
  ProofUse,
  ReferenceFacts,
  ReferenceLimit,
  ReferenceQuery,
} from './admission/store.ts'
export {
  createViolations,
  type Offender,
  type Violation,
  type ViolationCounter,
  type Violations,
  type ViolationsOptions,
} from './admission/violations.ts'
export { createGateway, type Gateway } from './app.ts'
export {
  type AuditTransport,
  type BatchingSinkOptions,
  batchingAuditSink,
} from './audit/batching-sink.ts'
export { consoleAuditSink } from './audit/console-sink.ts'
export { type AuditEvent, type AuditSink, auditEventSchema } from './audit/event.ts'
export { type Authorizer, createAuthorizer } from './authorization/permissions.ts'
export {
  type Breaker,
  type BreakerState,
  type BreakerWatch,
  bystanderOf,
  type CircuitBreaker,
  type CircuitBreakerOptions,
  createCircuitBreaker,
} from './breakers/breaker.ts'
export {
  type Breakers,
  type BreakersOptions,
  type BreakerTransition,
  createBreakers,
} from './breakers/registry.ts'
export { type CoalescedOriginOptions, coalescedOrigin } from './coalescing/coalesced-origin.ts'
export { type Config, type IssuerConfig, parseConfig } from './config.ts'
export * from './context.ts'
export {
  type Denial,
  Denied,
  type Dependency,
  type Fault,
  type InputError,
  Misconfigured,
  type RevokedBy,
  type SignatureCategory,
  type SignatureId,
  Unavailable,
} from './errors.ts'
export * from './index/middleware.ts'
export * from './index/relations.ts'
export type {
  InspectDefinition,
  JsonRpcDefinition,
  JsonRpcMethod,
  McpTool,
  SignaturesDefinition,
} from './inspection/definition.ts'
export type { AuthorizationServer } from './oauth/authorization-server.ts'
export { DEFAULT_TOKENS, type TokensDefinition } from './oauth/tokens-definition.ts'
export { type GuardedOriginOptions, guardedOrigin } from './origin/guarded-origin.ts'
export { createOrigin, type Origin, type OriginOptions } from './origin.ts'
export { definePolicy, type Policy, type PolicyLimit, type PolicyRoute } from './policy.ts'
export type {
  LimitBy,
  LimitDefinition,
  PermissionDemand,
  PolicyDefinition,
  RevocationDefinition,
  RouteDefinition,
} from './policy-definition.ts'
export { type ProblemOptions, problemHandler } from './problem.ts'
export type { Problem, ProblemCode } from './problem-of.ts'
export { refuseAll } from './refuse-all.ts'
export type { AdminOptions } from './routes/admin.ts'
export { type HealthOptions, healthRoutes, type ReadinessCheck } from './routes/health.ts'
export { type OAuthOptions, oauthRoutes } from './routes/oauth.ts'
export { type ProxyOptions, proxy } from './routes/proxy.ts'
export { type WellKnownOptions, wellKnownRoutes } from './routes/well-known.ts'
export { createServices, type GatewayEnv, type Services } from './services.ts'
export { type AuditQueueOptions, createAuditQueue } from './stores/queue/audit-queue.ts'
export { createUpstashAdmissionStore } from './stores/upstash/admission-store.ts'
export { type AuditSpillOptions, createAuditSpill } from './stores/upstash/audit-spill.ts'
export { createFailureCounter } from './stores/upstash/authentication-failures.ts'
export {
  createLimitControls,
  type LimitControls,
  type LimitOverride,
  type LimitReset,
} from './stores/upstash/limit-overrides.ts'
export { createReferenceStore } from './stores/upstash/references.ts'
export { createRedisRest, type RedisRest, type RedisRestOptions } from './stores/upstash/rest.ts'
export {
  type CutOff,
  createRevocations,
  type Revocations,
  type RevokedToken,
} from './stores/upstash/revocations.ts'
export { createViolationCounter } from './stores/upstash/violations.ts'
export type {
  AccessGrant,
  IssuedToken,
  IssueOptions,
  TokenIssuer,
} from './tokens/access-grant.ts'
export { newApiKey } from './tokens/api-key.ts'
export {
  type AssertionSigner,
  type AssertionSignerOptions,
  createAssertionSigner,
} from './tokens/assertion.ts'
export { bearerToken } from './tokens/bearer.ts'
export {
  createDpopVerifier,
  type DpopProof,
  type DpopRequest,
  type DpopVerifier,
  type DpopVerifierOptions,
  nonceSecretOf,
} from './tokens/dpop.ts'
export type { Principal, TokenVerifier } from './tokens/principal.ts'
export {
  credentialHash,
  type Reference,
  type ReferenceKind,
  type ReferenceRecord,
  type ReferenceStore,
} from './tokens/reference.ts'
export { createReferences, type References, type ReferencesOptions } from './tokens/references.ts'
export { parseSigningKeys, type SigningJwk } from './tokens/signing-keys.ts'
export { tokenIdHash } from './tokens/token-id.ts'
export { createTokenIssuer, type TokenIssuerOptions } from './tokens/token-issuer.ts'
export { createTokenVerifier, type TokenVerifierOptions } from './tokens/verifier.ts'
export {
  createSpanExporter,
  type SpanExporter,
  type SpanExporterOptions,
  type SpanTally,
} from './tracing/exporter.ts'
export type { Span } from './tracing/span.ts'
export type { Mode } from './validators/mode.ts'
