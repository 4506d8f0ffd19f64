/** Decodes JWTs without verifying them. */
import { objectIn } from './json.ts'

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
  const [header, claims] = [membersIn(first), membersIn(second)]
  return header && claims ? { header, claims } : undefined
}

function membersIn(part = ''): DecodedToken['claims'] | undefined {
  const value = objectIn(Buffer.from(part, 'base64url').toString('utf8'))
  return Array.isArray(value) ? undefined : (value as DecodedToken['claims'] | undefined)
}
