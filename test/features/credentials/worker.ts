/** The gateway of `policy.ts` on workerd. */
import { gatewayWorker } from '../../../src/runtimes/cloudflare/index.ts'
import policy from './policy.ts'

export default gatewayWorker(policy)
