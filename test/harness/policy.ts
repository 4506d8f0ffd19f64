/** The policy that ships, and what it does not turn on by itself. */

import shipped from '../../portcullis.config.ts'
import { abuseOf } from '../../src/admission/abuse-definition.ts'

export default { ...shipped, abuse: abuseOf({ authenticationFailures: {} }) }
