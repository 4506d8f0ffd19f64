/**
 * Names for Lua scripts that build names of keys, without the prefix; a script gets them by `--@inline`.
 * It reads the prefix from the name of one of its keys, so that one text serves every prefix and lane.
 */
import { createKeys, recordKeys, replicationKeys, signInKeys } from './keys.ts'

export { LIMIT_OVERRIDE_SUFFIX } from './keys.ts'

const NAMES = createKeys('')

export const REVOKED_TOKEN_PREFIX = NAMES.revokedToken
export const REVOKED_BEFORE_PREFIX = NAMES.revokedBefore
export const SUBJECT_BAN_PREFIX = NAMES.subjectBan
export const OBSERVED_SUBJECT_BAN_PREFIX = NAMES.observedSubjectBan
export const LIMIT_PREFIX = NAMES.limit
export const LIMIT_OVERRIDE_PREFIX = NAMES.limitOverride
export const API_KEY_USE_PREFIX = recordKeys(NAMES).apiKeyUse
export const REFERENCE_PREFIX = NAMES.reference
export const FEED = NAMES.feed
export const PENDING_FACTS = replicationKeys(NAMES).pendingFacts
export const FACT_CLOCK = replicationKeys(NAMES).factClock
export const PLAN_PREFIX = NAMES.plan
export const SESSION_PREFIX = signInKeys(NAMES).session
