/** Creates the two adapters for tests. */

import type { PolicyDecisionPoint } from '../../../../src/access/relations/decision-point.ts'
import { createAuthzenDecisionPoint } from '../../../../src/features/authzen/decision-point.ts'
import { createOpenfgaDecisionPoint } from '../../../../src/features/openfga/decision-point.ts'
import { createBreakers } from '../../../../src/isolate/breakers.ts'
import { STORES, TOKEN } from './servers.ts'

export type Kind = 'openfga' | 'authzen'
export const KINDS: readonly Kind[] = ['openfga', 'authzen']

/** A deadline for a server that is silent. */
export const SHORT_MS = 150

/**
 * Creates the decision point of one isolate: its breakers have a clock that only a test advances. No stall of the
 * machine exceeds the default deadline.
 */
export function isolate(kind: Kind, url: string, { timeoutMs = 20_000, token = TOKEN } = {}) {
  let nowMs = Date.now()
  const breakers = createBreakers({ now: () => nowMs, alarm: () => undefined })
  const common = { timeoutMs, token, watch: breakers.watch, now: () => nowMs, random: () => 0 }
  const { none, acme, umbra } = STORES
  const stores = new Map([
    ['', { store: none }],
    ['acme', { store: acme }],
    ['umbra', { store: umbra }],
  ])
  const pdp = `${url}/pdp`
  const urls = new Map(['', 'acme', 'umbra'].map((tenant) => [tenant, pdp] as const))
  const authority: PolicyDecisionPoint =
    kind === 'openfga'
      ? createOpenfgaDecisionPoint({ url, stores, ...common })
      : createAuthzenDecisionPoint({ urls, ...common })
  return {
    authority,
    breakers,
    pass(ms: number) {
      nowMs += ms
    },
  }
}
