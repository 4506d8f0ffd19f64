/** The two adapters, as tests make them. */
import { createBreakers } from '../../../src/isolate/breakers.ts'
import type { PolicyDecisionPoint } from '../../../src/relations/decision-point.ts'
import { createAuthzenDecisionPoint } from '../../../src/relations/decision-points/authzen.ts'
import { createOpenfgaDecisionPoint } from '../../../src/relations/decision-points/openfga.ts'
import { STORES, TOKEN } from './servers.ts'

export type Kind = 'openfga' | 'authzen'
export const KINDS: readonly Kind[] = ['openfga', 'authzen']

/** One isolate's: its breakers, whose clock stands still unless it is wound. */
export function isolate(kind: Kind, url: string, { timeoutMs = 150, token = TOKEN } = {}) {
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
