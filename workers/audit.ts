/** The audit Worker: writes the audit events of the gateway to D1, see `audit.toml`. */
import { auditWorker } from 'portcullis/cloudflare'

export default auditWorker()
