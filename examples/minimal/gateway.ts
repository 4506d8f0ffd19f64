/** The gateway Worker of a project. */
import { gatewayWorker } from 'portcullis/cloudflare'
import policy from './policy.ts'

export default gatewayWorker(policy)
