/** The gateway of `edge-policy.ts` on workerd. */
import { gatewayWorker } from '../../../src/runtimes/cloudflare/index.ts'
import policy from './edge-policy.ts'

export default gatewayWorker(policy)
