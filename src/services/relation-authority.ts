/** The external authority over relations that a policy chooses, made of an environment. */
import type { Breakers } from '../breakers/registry.ts'
import type { Config } from '../config.ts'
import { Misconfigured } from '../errors.ts'
import type { RelationAuthority } from '../relations/authority.ts'
import { coalescedAuthority } from '../relations/coalesced-authority.ts'
import { createAuthzenAuthority } from '../stores/authorities/authzen.ts'
import { createOpenfgaAuthority } from '../stores/authorities/openfga.ts'

export interface RelationAuthorityOptions {
  /** What the policy says. */
  readonly authority: 'openfga' | 'authzen'
  /** From `createBreakers`. Default nobody watches. */
  readonly watch?: Breakers['watch'] | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * Makes it, with its deadline, its breakers, and one call for those who ask the same at once. It keeps
 * no answer: a cache is the caller's. Throws `Misconfigured` where the environment does not say where
 * the authority is.
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
