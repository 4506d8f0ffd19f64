/** The gateway Worker: runs the standard pipeline with the policy in `portcullis.config.ts`. */
import { gatewayWorker } from 'portcullis/cloudflare'
import policy from '#policy'

export default gatewayWorker(policy)
