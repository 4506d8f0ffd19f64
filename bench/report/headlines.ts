/** The headline figures: at the top of the report, and the first of them in the README. */
import type { Measured } from '../scenario.ts'
import { aimMet, aimText, numberText, valueText } from './format.ts'
import type { Results } from './results.ts'
import type { Suite } from './schema.ts'
import { anchorOf, figuresOf } from './standing.ts'

export interface Headline {
  readonly what: string
  readonly value: string
  /** Such as `at most 2.4: met`; empty without a target. */
  readonly aim: string
  readonly isMet: boolean | undefined
  /** Absolute path of the results file. */
  readonly path: string
  readonly command: string
  readonly anchor: string
}

/** Scenario, figure and text of each headline, the most important first. Figures of `workerd serve` only. */
export const HEADLINES = [
  ['node', 'cpu-to-bare', 'on Node: CPU of the full pipeline, relative to a bare proxy'],
  ['node', 'rps-to-readme', 'on Node: throughput, relative to libraries used as in their READMEs'],
  ['layers', 'full-cpu-ratio', 'on workerd: CPU of the full pipeline, relative to a bare proxy'],
  ['layers', 'full-added-p50', 'time that the full pipeline adds to a request, median'],
  ['peers', 'cpu-to-handwritten', 'CPU of the full pipeline, relative to a handwritten stack'],
  ['peers', 'rps-to-handwritten', 'throughput, relative to a handwritten stack'],
  ['sessions', 'peak-at-1', 'session steps (log in, verify, log out) of one gateway'],
  ['sessions', 'users-10000-at-4-failed', 'failed steps of 10,000 users at four gateways'],
] as const satisfies readonly (readonly [scenario: string, figure: string, what: string])[]

export function headlinesOf(results: Results): readonly Headline[] {
  const { suite, again } = results
  const all = figuresOf(results).filter(({ of }) => of.runtime === 'workerd')
  const measured = HEADLINES.flatMap(([scenario, id, what]): Headline[] => {
    const placed = all.find(({ figure, of }) => of.scenario === scenario && figure.id === id)
    if (placed === undefined || suite === undefined) return []
    const { figure, of } = placed
    const source = again.findLast(({ result }) => holds(result, of)) ?? suite
    const isMet = aimMet(figure)
    const verdict = isMet === true ? 'met' : 'missed'
    return [
      {
        what,
        value: valueText(figure),
        isMet,
        anchor: anchorOf(of),
        aim: isMet === undefined ? '' : `${aimText(figure)}: ${verdict}`,
        path: source.path,
        command: source.result.command,
      },
    ]
  })
  return [...measured, ...soakHeadline(results)]
}

const holds = ({ measured }: Suite, { scenario, runtime }: Measured): boolean =>
  measured.some((one) => one.scenario === scenario && one.runtime === runtime)

function soakHeadline({ soak }: Results): readonly Headline[] {
  if (soak === undefined) return []
  const { invariants, load, faults, options, command } = soak.result
  const broken = invariants.filter(({ holds }) => holds === false)
  const held = invariants.filter(({ holds }) => holds === true)
  return [
    {
      what:
        `invariants that held for ${numberText(options.minutes)} minutes and ` +
        `${numberText(load.requests)} requests, during ${faultsIn(faults)} faults`,
      value: `${held.length} of ${invariants.length}`,
      aim: broken.length === 0 ? '' : `broken: ${broken.map(({ what }) => what).join('; ')}`,
      isMet: broken.length === 0 && held.length > 0,
      path: soak.path,
      command,
      anchor: 'soak',
    },
  ]
}

/** Counts the faults. A fault before the start of the load does not count. */
function faultsIn(faults: readonly { readonly startSeconds: number }[]): number {
  return faults.filter(({ startSeconds }) => startSeconds >= 0).length
}
