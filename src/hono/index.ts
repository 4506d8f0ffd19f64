/** One call guards a Hono app. */

export type { Principal } from '../access/principal.ts'
export type { AuditEvent, AuditSink } from '../audit/event.ts'
export { consoleAuditSink } from '../audit/truncate.ts'
export { Denied, Misconfigured, Unavailable } from '../errors.ts'
export { clientAddressOf, requestIdOf, traceOf } from '../middleware/context.ts'
export { problemHandler } from '../middleware/problem-handler.ts'
export type { LimitDefinition } from '../policy/definition.ts'
export type { LimitText } from '../validators/limit.ts'
export type { RouteGuard } from './declaration.ts'
export {
  type CallerVariables,
  type Guard,
  type GuardEnv,
  type GuardVariables,
  portcullis,
} from './guard.ts'
export type { GuardOptions, IssuerOptions, RedisClient, RedisOptions } from './options.ts'
export type { RevocationTarget } from './revoke.ts'
