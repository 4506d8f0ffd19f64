/** One call guards a Hono app. */

export type { Principal } from '../access/principal.ts'
export type { AuditEvent, AuditSink } from '../audit/event.ts'
export { consoleAuditSink } from '../audit/truncate.ts'
export { Denied, Misconfigured, Unavailable } from '../errors.ts'
export type { IssuerOptions, RedisClient, RedisOptions } from '../guard/options.ts'
export type { RevocationTarget } from '../guard/revoke.ts'
export { clientAddressOf, requestIdOf, traceOf } from '../middleware/context.ts'
export { problemHandler } from '../middleware/problem-handler.ts'
export type { LimitDefinition } from '../policy/definition.ts'
export type { LimitText } from '../validators/limit.ts'
export {
  type CallerVariables,
  type Guard,
  type GuardEnv,
  type GuardOptions,
  type GuardVariables,
  portcullis,
} from './guard.ts'
export type { RouteGuard } from './route-guard.ts'
