/** The Worker of `npm run fuzz:transport`. */
import { gatewayWorker } from '../../src/runtimes/cloudflare/index.ts'
import { policyWith } from './policy.ts'

export default gatewayWorker(policyWith('wide'))
