/** Names that operators enter, with the same rules as names in tokens. */
import * as z from 'zod'
import { name, scopeName } from './name.ts'

export { name }

const MAX_NAMES = 100
const MAX_ROLE_CHARS = 256
const MAX_ISSUER_CHARS = 2_048

export const issuerName = name(MAX_ISSUER_CHARS)
export const roleNames = z.array(name(MAX_ROLE_CHARS)).max(MAX_NAMES)
export const scopeNames = z.array(scopeName).max(MAX_NAMES)
