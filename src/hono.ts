/** One call guards a Hono app. */
export type { AuditEvent, AuditSink } from './audit/event.ts'
export { consoleAuditSink } from './audit/truncate.ts'
export { Denied, Misconfigured, Unavailable } from './errors.ts'
export type { RouteGuard } from './facade/declaration.ts'
export {
  type CallerVariables,
  type Guard,
  type GuardEnv,
  type GuardVariables,
  portcullis,
} from './facade/guard.ts'
export type { GuardOptions, IssuerOptions, RedisClient, RedisOptions } from './facade/options.ts'
export type { RevocationTarget } from './facade/revoke.ts'
export type { Principal } from './identity/principal.ts'
export { clientAddressOf, requestIdOf, traceOf } from './middleware/context.ts'
export { problemHandler } from './middleware/problem-handler.ts'
export type { LimitDefinition } from './policy/definition.ts'
export type { LimitText } from './validators/limit.ts'
