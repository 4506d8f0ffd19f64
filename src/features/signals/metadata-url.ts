/** Where a transmitter describes itself. */

/** Returns the URL of a transmitter's metadata (SSF 1.0 section 7.2.1). */
export function configurationUrlOf(issuer: string): string {
  const { origin, pathname } = new URL(issuer)
  return `${origin}/.well-known/ssf-configuration${pathname.replace(/\/$/, '')}`
}
