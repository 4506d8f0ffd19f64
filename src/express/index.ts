/** One call guards an app of Express, or of another framework with handlers of Connect. */
import type { GuardedRequest } from './guard.ts'

export type { Principal } from '../access/principal.ts'
export type { AuditEvent, AuditSink } from '../audit/event.ts'
export { consoleAuditSink } from '../audit/truncate.ts'
export { Denied, Misconfigured, Unavailable } from '../errors.ts'
export type { IssuerOptions, RedisClient, RedisOptions } from '../guard/options.ts'
export type { RevocationTarget } from '../guard/revoke.ts'
export { clientAddressOf, requestIdOf, traceOf } from '../guard/run.ts'
export type { LimitDefinition } from '../policy/definition.ts'
export type { LimitText } from '../validators/limit.ts'
export type { ConnectHandler, ConnectRequest, ConnectResponse } from './connect.ts'
export {
  type Guard,
  type GuardedRequest,
  type GuardOptions,
  portcullis,
  type RouteGuard,
} from './guard.ts'

declare global {
  namespace Express {
    /** Behind a guard. */
    interface Request extends Partial<GuardedRequest> {}
  }
}
