/** Keys of windows: the limit that counts, and the party that it counts. */

import { keyPart } from '../../redis/key-part.ts'
import { type Principal, vouchingIssuer } from '../principal.ts'
import type { LimitRequest } from './limit.ts'

/** Properties of a caller that a limit can count by without a function. */
export type LimitScope = 'key' | 'subject' | 'client' | 'tenant' | 'address'

/** The party that a window counts. */
interface WindowOwner {
  /** The issuer that vouches for the party; see `vouchingIssuer`. Ignored for addresses and functions. */
  readonly issuer: string
  /** The id of the API key, the subject, client, tenant or normalized address, or the return value of the function. */
  readonly value: string
  /** For an exact limit by subject: the tenant of the caller, if it has one. Ignored for all others. */
  readonly tenant?: string | undefined
}

interface WindowRule {
  readonly name: string
  readonly by: LimitScope | ((...of: never) => string)
  readonly engine?: unknown
}

/** Reports whether a limit counts a subject in each of its tenants separately. */
export const countsByMember = ({ by, engine }: WindowRule): boolean =>
  (by === 'subject' || by === 'key') && typeof engine !== 'object'

/**
 * Returns the key of one window of a limit, as `LimitRequest.key` contains it:
 * `<name>:address:<address>`, `<name>:custom:<value>`, `<name>:<by>:<issuer>:<value>`, or
 * `<name>:subject:<issuer>:<tenant>:<value>`. Each part is a `keyPart`.
 * Returns a promise only if a part is so long that it must be hashed.
 */
export function limitKeyOf(
  { name, by, engine }: WindowRule,
  { issuer, value, tenant }: WindowOwner,
): string | Promise<string> {
  if (by === 'address') return joined([name, by, keyPart(value)])
  if (typeof by === 'function') return joined([name, 'custom', keyPart(value)])
  const isMember = tenant !== undefined && by === 'subject' && countsByMember({ name, by, engine })
  return joined([name, by, ...(isMember ? [issuer, tenant, value] : [issuer, value]).map(keyPart)])
}

/** A caller keeps its key. V8 keeps a joined text as one object, and a template as a tree of its parts. */
function joined(parts: readonly (string | Promise<string>)[]): string | Promise<string> {
  return parts.every((part) => typeof part === 'string')
    ? parts.join(':')
    : Promise.all(parts).then(joined)
}

/** A window, as a `LimitRequest` names it. */
export type LimitWindow = Pick<LimitRequest, 'key' | 'everywhere' | 'owner'>

/**
 * Returns the window of a caller: its key, and for a member of a tenant `everywhere`, the key that the
 * caller would have without the tenant.
 */
export async function windowOfPrincipal(
  rule: Pick<WindowRule, 'name' | 'engine'> & { readonly by: LimitScope },
  principal: Principal,
): Promise<LimitWindow> {
  const by = rule.by === 'key' && principal.key === undefined ? 'subject' : rule.by
  const issuer = vouchingIssuer(principal, by)
  // Callers without a client or tenant share one window per issuer: none bypasses the limit.
  const value = by === 'address' ? '' : (principal[by] ?? '')
  const { tenant } = principal
  const everywhere = await limitKeyOf({ ...rule, by }, { issuer, value })
  const owner = by === 'key' ? principal.subject : value
  if (tenant === undefined || by !== 'subject')
    return { key: everywhere, everywhere: undefined, owner }
  const key = await limitKeyOf({ ...rule, by }, { issuer, value, tenant })
  return { key, everywhere: key === everywhere ? undefined : everywhere, owner }
}
