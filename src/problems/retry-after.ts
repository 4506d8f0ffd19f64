/** `Retry-After` (RFC 9110 section 10.2.3): how long a refused caller waits. */

/** Returns the whole seconds until a time, rounded up so that no caller retries too early. At least 1. */
export const secondsUntil = (untilMs: number, nowMs: number): number =>
  Math.max(1, Math.ceil((untilMs - nowMs) / 1000))

/** Returns the header for the seconds of a refusal. */
export const retryAfter = (refusal: { readonly retryAfterSeconds: number }) => ({
  'Retry-After': String(refusal.retryAfterSeconds),
})
