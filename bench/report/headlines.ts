/** The few figures that stand for all of them: at the top of the page and in the README. */
import type { Measured } from '../scenario.ts'
import { aimText, numberText, valueText } from './format.ts'
import type { Results } from './results.ts'
import type { Suite } from './schema.ts'
import { anchorOf, figuresOf, meets } from './standing.ts'

/** One of them. */
export interface Headline {
  readonly what: string
  readonly value: string
  /** Such as `at most 2.4: met`; empty where nothing is aimed at. */
  readonly aim: string
  readonly isMet: boolean | undefined
  /** Whole path of the file of results. */
  readonly path: string
  readonly command: string
  /** Its place in the page. */
  readonly anchor: string
}

/** What a headline says, and the figure that it says it with. Figures of `workerd serve` only. */
export const HEADLINES = [
  ['layers', 'full-cpu-ratio', 'CPU of the full pipeline, as a multiple of a bare proxy’s'],
  ['layers', 'full-added-p50', 'what the full pipeline adds to a request, median'],
  ['peers', 'cpu-to-handwritten', 'CPU, as a share of what a stack written by hand takes'],
  ['peers', 'rps-to-handwritten', 'throughput, as a multiple of that stack’s'],
  ['sessions', 'peak-at-1', 'steps of sessions (log in, verify, log out) that one gateway does'],
  ['sessions', 'users-10000-at-4-failed', 'of the steps of 10,000 users at four gateways, failed'],
] as const satisfies readonly (readonly [scenario: string, figure: string, what: string])[]

/** Those that were measured; what is not in the results has no headline. */
export function headlinesOf(results: Results): readonly Headline[] {
  const { suite, again } = results
  const all = figuresOf(results).filter(({ of }) => of.runtime === 'workerd')
  const measured = HEADLINES.flatMap(([scenario, id, what]): Headline[] => {
    const placed = all.find(({ figure, of }) => of.scenario === scenario && figure.id === id)
    if (placed === undefined || suite === undefined) return []
    const { figure, of } = placed
    const source = again.findLast(({ result }) => holds(result, of)) ?? suite
    const isMet = figure.aim === undefined ? undefined : meets(figure.value, figure.aim)
    const verdict = isMet === true ? 'met' : 'missed'
    return [
      {
        ...{ what, value: valueText(figure), isMet, anchor: anchorOf(of) },
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
        `invariants that held over ${numberText(options.minutes)} minutes and ` +
        `${numberText(load.requests)} requests, under ${faultsIn(faults)} faults`,
      value: `${held.length} of ${invariants.length}`,
      aim: broken.length === 0 ? '' : `broken: ${broken.map(({ what }) => what).join('; ')}`,
      isMet: broken.length === 0 && held.length > 0,
      path: soak.path,
      command,
      anchor: 'soak',
    },
  ]
}

/** What came before the load began was no fault. */
function faultsIn(faults: readonly { readonly startSeconds: number }[]): number {
  return faults.filter(({ startSeconds }) => startSeconds >= 0).length
}
