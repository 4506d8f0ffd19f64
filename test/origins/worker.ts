/** The gateway of `isolated-policy.ts` on workerd. */
import { gatewayWorker } from '../../src/cloudflare.ts'
import policy from './isolated-policy.ts'

export default gatewayWorker(policy)
