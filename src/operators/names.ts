/** Names that operators write, as strict as those in tokens are. */
import * as z from 'zod'
import { name } from '../validators/name.ts'

export { name }

/** RFC 6749 section 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/
const MAX_NAMES = 100
const MAX_ROLE_CHARS = 256
const MAX_ISSUER_CHARS = 2_048

export const issuerName = name(MAX_ISSUER_CHARS)
export const roleNames = z.array(name(MAX_ROLE_CHARS)).max(MAX_NAMES)
export const scopeNames = z.array(z.string().regex(SCOPE, 'a scope token')).max(MAX_NAMES)
