/** The issuers and addresses that an operator's call covers. */
import { addressGroup } from '../../middleware/client-address.ts'
import { inputRefused } from './call.ts'

/**
 * Returns the issuers that a call covers: the one that it names, or all trusted issuers. Throws
 * `Denied` (`input_invalid`) for an issuer that is not trusted: it has no valid tokens, so it was
 * mistyped.
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

/** The written form of an IPv6 group, which is not an address itself. */
const GROUP_END = /::\/64$/

/**
 * Returns the `value` of a body as `admit` normalises addresses: IPv6 as its /64. Throws `Denied`
 * (`input_invalid`) if it is not an address.
 */
export function addressOf(value: string): string {
  const group = addressGroup(value.replace(GROUP_END, '::'))
  if (group === undefined) throw inputRefused('body', '/value', 'is no IP address')
  return group
}
