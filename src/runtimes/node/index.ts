/** The gateway as a server on Node. */
export type { Policy } from '../../policy/policy.ts'
export type { PolicyChange } from './policy-change.ts'
export { check, type ServeOptions, type Server, serve } from './serve.ts'
