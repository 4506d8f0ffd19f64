/**
 * Names for Lua scripts that build names of keys; a script gets them by `--@inline`. They have the
 * default prefix, which `withPrefix` replaces in the text of the script.
 */
import { DEFAULT_KEYS, recordKeys } from './keys.ts'

export { LIMIT_OVERRIDE_SUFFIX } from './keys.ts'

export const REVOKED_TOKEN_PREFIX = DEFAULT_KEYS.revokedToken
export const REVOKED_BEFORE_PREFIX = DEFAULT_KEYS.revokedBefore
export const SUBJECT_BAN_PREFIX = DEFAULT_KEYS.subjectBan
export const OBSERVED_SUBJECT_BAN_PREFIX = DEFAULT_KEYS.observedSubjectBan
export const LIMIT_PREFIX = DEFAULT_KEYS.limit
export const LIMIT_OVERRIDE_PREFIX = DEFAULT_KEYS.limitOverride
export const API_KEY_USE_PREFIX = recordKeys(DEFAULT_KEYS).apiKeyUse
export const REFERENCE_PREFIX = DEFAULT_KEYS.reference
export const PLAN_PREFIX = DEFAULT_KEYS.plan
