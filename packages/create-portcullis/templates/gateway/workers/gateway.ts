import { gatewayWorker } from 'portcullis/cloudflare'
import policy from '../portcullis.config.ts'

export default gatewayWorker(policy)
