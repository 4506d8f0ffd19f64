/** Creates the external policy decision point that a policy selects. */

import { Misconfigured } from '../errors.ts'
import type { Breakers } from '../isolate/breakers.ts'
import type { RelationAuthority } from '../relations/authority.ts'
import { coalescedAuthority } from '../relations/coalesced-authority.ts'
import { createAuthzenAuthority } from '../relations/decision-points/authzen.ts'
import { createOpenfgaAuthority } from '../relations/decision-points/openfga.ts'
import type { Config } from '../validators/environment.ts'

export interface RelationAuthorityOptions {
  /** The policy decision point that the policy selects. */
  readonly authority: 'openfga' | 'authzen'
  /** From `createBreakers`. Default: the breakers are not watched. */
  readonly watch?: Breakers['watch'] | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * Creates the policy decision point, with its deadline and its breakers. Equal checks at the same
 * time share one call. It does not cache decisions: the caller does. Throws `Misconfigured` if the
 * environment does not configure it.
 */
export function createRelationAuthority(
  config: Pick<Config, 'authorities'>,
  { authority, ...options }: RelationAuthorityOptions,
): RelationAuthority {
  const { timeoutMs } = config.authorities
  return coalescedAuthority({
    authority: adapterOf(config, authority, { ...options, timeoutMs }),
    maxWaitMs: timeoutMs,
    ...options,
  })
}

function adapterOf(
  { authorities: { openfga, authzen } }: Pick<Config, 'authorities'>,
  authority: RelationAuthorityOptions['authority'],
  options: Omit<RelationAuthorityOptions, 'authority'> & { readonly timeoutMs: number },
): RelationAuthority {
  if (authority === 'openfga') {
    if (openfga === undefined) throw missing('OPENFGA_URL')
    return createOpenfgaAuthority({ ...openfga, ...options })
  }
  if (authzen === undefined) throw missing('AUTHZEN_URLS')
  return createAuthzenAuthority({ ...authzen, ...options })
}

const missing = (variable: string) =>
  new Misconfigured('The environment', [`${variable}: is missing, and the policy asks for it`])
