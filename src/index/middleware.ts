/** The public surface of Portcullis: the stages of the pipeline. */

export { type AdmitOptions, admit } from '../middleware/admit.ts'
export { type AuditOptions, audit } from '../middleware/audit.ts'
export { type AuthenticateOptions, authenticate } from '../middleware/authenticate.ts'
export { type AuthorizeOptions, authorize } from '../middleware/authorize.ts'
export { type BanOffendersOptions, banOffenders } from '../middleware/ban-offenders.ts'
export { canonicalPath } from '../middleware/canonical-path.ts'
export { clientAddress } from '../middleware/client-address.ts'
export { type InspectOptions, inspect } from '../middleware/inspect.ts'
export { type LimitBodyOptions, limitBody } from '../middleware/limit-body.ts'
export { lingerOnRefusal } from '../middleware/linger-on-refusal.ts'
export { observe } from '../middleware/observe.ts'
export {
  createReadmission,
  type Readmission,
  type ReadmitOptions,
  readmit,
} from '../middleware/readmit.ts'
export { type RequestIdOptions, requestId } from '../middleware/request-id.ts'
export { sanitizeHeaders } from '../middleware/sanitize-headers.ts'
export { type ServerTimingOptions, serverTiming } from '../middleware/server-timing.ts'
export { type ShedLoadOptions, shedLoad } from '../middleware/shed-load.ts'
export { type ThrottleOptions, throttle } from '../middleware/throttle.ts'
export { type TraceRequestsOptions, traceRequests } from '../middleware/trace-requests.ts'
export { type ValidateOptions, validate } from '../middleware/validate.ts'
