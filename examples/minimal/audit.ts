/** The audit Worker of a project. */
import { auditWorker } from 'portcullis/cloudflare'

export default auditWorker()
