/** Compares measured values with targets and published figures. Pure. */
import {
  PUBLISHED,
  type Published,
  type PublishedId,
  SYSTEMS,
  type SystemId,
} from '../published.ts'
import type { Figure, Measured } from '../scenario.ts'
import { aimMet, aimText, counted, numberText, valueText } from './format.ts'
import type { Results } from './results.ts'

export interface Placed {
  readonly figure: Figure
  readonly of: Measured
}

/** A target and its measured value. `isMet` is undefined if the run was too short to decide. */
export interface Standing {
  readonly what: string
  readonly aim: string
  readonly value: string
  readonly isMet: boolean | undefined
  readonly anchor: string
  readonly of: string
}

/** One system, and each of its published figures with comparable own figures. */
export interface Beside {
  readonly system: string
  readonly rows: readonly {
    readonly published: Published
    readonly ours: readonly Ours[]
    /** Empty without a figure that has a bound. */
    readonly verdicts: readonly Verdict[]
  }[]
}

/** How many comparable figures of one runtime are as good as published, or better. */
export interface Verdict {
  readonly by: string
  readonly good: number
  readonly of: number
}

/** An own figure that is comparable with a published one. */
export interface Ours {
  readonly title: string
  readonly value: string
  /** A runtime, or another property of the measurement. */
  readonly by: string
  readonly anchor: string
}

export function figuresOf({ suite }: Pick<Results, 'suite'>): readonly Placed[] {
  return (suite?.result.measured ?? []).flatMap((of) =>
    of.figures.map((figure) => ({ figure, of })),
  )
}

export function anchorOf({ scenario, runtime }: Pick<Measured, 'scenario' | 'runtime'>): string {
  return `${scenario}-${runtime}`
}

/** Returns all targets of the suite and the soak, missed ones first. */
export function standingsOf(results: Pick<Results, 'suite' | 'soak'>): readonly Standing[] {
  const figures = figuresOf(results).flatMap(({ figure, of }): Standing[] =>
    figure.aim === undefined
      ? []
      : [
          {
            what: figure.title,
            aim: aimText(figure),
            value: valueText(figure),
            isMet: aimMet(figure),
            anchor: anchorOf(of),
            of: `${of.title}, ${of.runtime}`,
          },
        ],
  )
  const invariants = (results.soak?.result.invariants ?? []).map(
    ({ what, aim, value, holds }): Standing => ({
      what,
      aim,
      value,
      isMet: holds,
      anchor: 'soak',
      of: 'Soak',
    }),
  )
  const all = [...figures, ...invariants]
  return [...all.filter(({ isMet }) => isMet !== true), ...all.filter(({ isMet }) => isMet)]
}

/** Returns all published figures by system, with or without a comparable own figure. */
export function besides(
  results: Pick<Results, 'suite' | 'soak' | 'comparisons'>,
): readonly Beside[] {
  const placed = figuresOf(results)
  const ids = Object.keys(PUBLISHED) as PublishedId[]
  return (Object.keys(SYSTEMS) as SystemId[]).map((system) => ({
    system: SYSTEMS[system],
    rows: ids
      .filter((id) => PUBLISHED[id].system === system)
      .map((id) => ({ id, known: placed.filter(({ figure }) => figure.beside?.includes(id)) }))
      .map(({ id, known }) => ({
        published: PUBLISHED[id],
        verdicts: verdictsOf(PUBLISHED[id], known),
        ours: [
          ...known.map(oursOf),
          ...(id === 'spacetime-soak' ? soaked(results) : []),
          ...(id === 'spacetime-regression' || id === 'identity-regression'
            ? compared(results)
            : []),
        ],
      })),
  }))
}

const oursOf = ({ figure, of }: Placed): Ours => ({
  title: figure.title,
  value: valueText(figure),
  by: runtimeOf(of),
  anchor: anchorOf(of),
})

/** The published figures of the scenario `node` stand beside those of the server on Node. */
const runtimeOf = ({ scenario, runtime }: Measured): string =>
  scenario === 'node' ? scenario : runtime

/** Compares own figures with the published values. A development proxy has no verdict. */
function verdictsOf({ bounds }: Published, known: readonly Placed[]): readonly Verdict[] {
  const isGood = new Map<string, boolean[]>()
  for (const { figure, of } of known) {
    const by = runtimeOf(of)
    const bound = bounds.find(({ unit, key }) => unit === figure.unit && isOf(figure, key))
    if (bound === undefined || by === 'wrangler') continue
    const met = aimMet({ value: figure.value, aim: bound }) === true
    isGood.set(by, [...(isGood.get(by) ?? []), met])
  }
  return [...isGood].map(([by, all]) => ({
    by,
    good: all.filter((met) => met).length,
    of: all.length,
  }))
}

const isOf = ({ id }: Figure, key: string | undefined): boolean =>
  key === undefined || id === key || id.endsWith(`-${key}`)

function soaked({ soak }: Pick<Results, 'soak'>): readonly Ours[] {
  if (soak === undefined) return []
  const { invariants, load, options } = soak.result
  const held = invariants.filter(({ holds }) => holds === true).length
  const title = `invariants that held over ${counted(options.minutes, 'minute')} under faults`
  const by = `${numberText(load.offeredPerSecond)} requests a second`
  return [{ title, value: `${held} of ${invariants.length}`, by, anchor: 'soak' }]
}

function compared({ comparisons }: Pick<Results, 'comparisons'>): readonly Ours[] {
  return comparisons.map(({ result: { head, base, options, verdict, pairs } }) => ({
    title: `${head.name} to ${base.name}${slowedBy(options.slowDownPercent)}`,
    value: verdict,
    by: `alarms at ${options.thresholdPercent} %, ${counted(pairs.length, 'pair')}`,
    anchor: 'comparisons',
  }))
}

/** Returns the note about an artificial slow-down; empty without one. */
export function slowedBy(percent: number): string {
  return percent === 0 ? '' : `, slowed down by ${numberText(percent)} %`
}
