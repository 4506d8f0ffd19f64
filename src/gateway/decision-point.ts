/** Creates the external policy decision point that a policy selects. */

import { Misconfigured } from '../errors.ts'
import type { Breakers } from '../isolate/breakers.ts'
import { coalescedDecisionPoint } from '../relations/coalesced-decision-point.ts'
import type { PolicyDecisionPoint } from '../relations/decision-point.ts'
import { createAuthzenDecisionPoint } from '../relations/decision-points/authzen.ts'
import { createOpenfgaDecisionPoint } from '../relations/decision-points/openfga.ts'
import type { Config } from '../validators/environment.ts'

export interface PolicyDecisionPointOptions {
  /** The policy decision point that the policy selects. */
  readonly kind: 'openfga' | 'authzen'
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
export function createPolicyDecisionPoint(
  config: Pick<Config, 'decisionPoints'>,
  { kind, ...options }: PolicyDecisionPointOptions,
): PolicyDecisionPoint {
  const { timeoutMs } = config.decisionPoints
  return coalescedDecisionPoint({
    decisionPoint: adapterOf(config, kind, { ...options, timeoutMs }),
    maxWaitMs: timeoutMs,
    ...options,
  })
}

function adapterOf(
  { decisionPoints: { openfga, authzen } }: Pick<Config, 'decisionPoints'>,
  kind: PolicyDecisionPointOptions['kind'],
  options: Omit<PolicyDecisionPointOptions, 'kind'> & { readonly timeoutMs: number },
): PolicyDecisionPoint {
  if (kind === 'openfga') {
    if (openfga === undefined) throw missing('OPENFGA_URL')
    return createOpenfgaDecisionPoint({ ...openfga, ...options })
  }
  if (authzen === undefined) throw missing('AUTHZEN_URLS')
  return createAuthzenDecisionPoint({ ...authzen, ...options })
}

const missing = (variable: string) =>
  new Misconfigured('The environment', [`${variable}: is missing, but the policy needs it`])
