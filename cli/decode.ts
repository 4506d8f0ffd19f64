/** Decodes JWTs without verifying them. */

export interface DecodedToken {
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Readonly<Record<string, unknown>>
}

const COMPACT_JWS = /^([\w-]+)\.([\w-]+)\.([\w-]*)$/

/**
 * Returns the header and claims of a signed JWT (RFC 7519), or undefined for any other text. Does
 * NOT check the signature, the times or the issuer, so the content is untrusted.
 */
export function decodeToken(text: string): DecodedToken | undefined {
  const [, first, second] = COMPACT_JWS.exec(text) ?? []
  const [header, claims] = [objectIn(first), objectIn(second)]
  return header && claims ? { header, claims } : undefined
}

function objectIn(part: string | undefined): Record<string, unknown> | undefined {
  if (part === undefined) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
