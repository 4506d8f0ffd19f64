/** The Worker of `npm run fuzz:transport`. */
import { gatewayWorker } from '../../src/cloudflare.ts'
import { policyWith } from './policy.ts'

export default gatewayWorker(policyWith('wide'))
