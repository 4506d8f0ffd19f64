import { auditWorker } from 'portcullis/cloudflare'

export default auditWorker()
