/** The gateway of `isolated-policy.ts` on workerd. */
import { gatewayWorker } from '../../../src/runtimes/cloudflare/index.ts'
import policy from './isolated-policy.ts'

export default gatewayWorker(policy)
