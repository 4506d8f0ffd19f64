/** Whose: the issuers that an operator's call is about. */
import { inputRefused } from './call.ts'

/**
 * The issuers that a call holds for: the one it names, or all that are trusted. One that is not
 * trusted is refused: nothing has a token of it, so it was mistyped.
 */
export function issuersOf(
  issuer: string | undefined,
  trusted: readonly string[],
): readonly string[] {
  if (issuer === undefined) return trusted
  if (!trusted.includes(issuer))
    throw inputRefused('body', '/issuer', 'is not one of the trusted issuers')
  return [issuer]
}
