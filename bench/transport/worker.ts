/** The Worker of `npm run fuzz:transport`. */
import { gatewayWorker } from '../../src/cloudflare.ts'
import policy from './policy.ts'

export default gatewayWorker(policy)
