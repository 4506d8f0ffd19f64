/** Whose: the issuers and addresses that an operator's call is about. */
import { addressGroup } from '../../middleware/client-address.ts'
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

/** How a group of IPv6 addresses is told, which is no address by itself. */
const GROUP_END = /::\/64$/

/** The `value` of a body as `admit` looks for it: IPv6 by its /64. Refuses what is no address. */
export function addressOf(value: string): string {
  const group = addressGroup(value.replace(GROUP_END, '::'))
  if (group === undefined) throw inputRefused('body', '/value', 'is no IP address')
  return group
}
