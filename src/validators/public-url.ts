/** The spelling of `PUBLIC_URL`. */

/**
 * Returns the value as issuer and audience: with its scheme in lower case, and without a slash at its end. The host and
 * the port keep their spelling: tokens, API keys and records contain it, and are compared character by character.
 */
export const publicUrlOf = (text: string): string =>
  text.replace(/^https?:/i, (scheme) => scheme.toLowerCase()).replace(/\/$/, '')
