/** The gateway of `wired-policy.ts` on workerd. */
import { gatewayWorker } from '../../../src/runtimes/cloudflare/index.ts'
import policy from './wired-policy.ts'

export default gatewayWorker(policy)
