/** Defaults of the gateway and of Hono apps. */
import type { RevocationDefinition } from './definition.ts'

/** 1 MiB. */
export const DEFAULT_MAX_BODY_BYTES = 1_048_576
export const DEFAULT_ORIGIN_TIMEOUT_MS = 15_000
/** A short outage of Redis must not end every stream. */
export const DEFAULT_RECHECK_GRACE_SECONDS = 10
/** Strict: every request is checked in Redis. See docs/decisions/0038. */
export const DEFAULT_REVOCATION: Required<RevocationDefinition> = { maxStalenessMs: 0 }
/** See docs/decisions/0024. */
export const DEFAULT_MAX_CONCURRENT_REQUESTS = 1_000
/** See docs/decisions/0101-stalled-clients.md. */
export const DEFAULT_MAX_OPEN_RESPONSES = 20_000
export const DEFAULT_CLIENT_STALL_SECONDS = 60
