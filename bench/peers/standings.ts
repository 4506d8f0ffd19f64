/** Computes the costs of each gateway, and the ratio of ours to each. */
import type { Figure } from '../scenario.ts'
import { median, ratio, rounded } from '../statistics.ts'
import type { Contestant } from './contestant.ts'
import type { Bout } from './measure.ts'

/** The medians of a gateway's rounds. */
export interface Standing {
  readonly id: string
  readonly title: string
  readonly version: string
  readonly median: Bout
  /** Our value divided by its value, medians over neighbouring rounds; 1 for ours. */
  readonly oursToIt: Readonly<Record<Compared, number>>
  readonly rounds: readonly Bout[]
}

/** The compared values. */
export const COMPARED = ['cpuSeconds', 'requestsPerSecond', 'p50Ms', 'p99Ms'] as const
export type Compared = (typeof COMPARED)[number]

const RATIO_DIGITS = 3
const DIGITS = 5

export interface Contest {
  readonly contestant: Pick<Contestant, 'id' | 'title'>
  readonly version: string
  readonly rounds: readonly Bout[]
}

/**
 * Computes the standings. `ours` is the id of our gateway. Throws if it, or a round, is missing.
 */
export function standingsOf(contests: readonly Contest[], ours: string): readonly Standing[] {
  const own = contests.find(({ contestant }) => contestant.id === ours)?.rounds ?? []
  const ownRound = (index: number): Bout => {
    const round = own[index]
    if (round === undefined) throw new RangeError(`standings: ${ours} has no round ${index + 1}`)
    return round
  }
  return contests.map(({ contestant: { id, title }, version, rounds }) => {
    const compared = (key: Compared) =>
      rounded(
        median(rounds.map((round, index) => ratio(ownRound(index)[key], round[key]))),
        RATIO_DIGITS,
      )
    return {
      id,
      title,
      version,
      median: medianOf(rounds),
      oursToIt: Object.fromEntries(COMPARED.map((key) => [key, compared(key)])) as Record<
        Compared,
        number
      >,
      rounds,
    }
  })
}

function medianOf(rounds: readonly Bout[]): Bout {
  const [first] = rounds
  if (first === undefined) throw new RangeError('standings: there are no rounds')
  const keys = Object.keys(first) as (keyof Bout)[]
  return Object.fromEntries(
    keys.map((key) => [key, rounded(median(rounds.map((round) => round[key])), DIGITS)]),
  ) as unknown as Bout
}

/** The gateway to which the targets apply: the handwritten stack. */
const AIMED_AT = 'handwritten'
const AIMS = {
  cpuSeconds: { at: 'most', value: 0.55 },
  requestsPerSecond: { at: 'least', value: 2 },
  p99Ms: { at: 'most', value: 0.5 },
} as const satisfies Partial<Record<Compared, Figure['aim']>>

const RATIOS = {
  cpuSeconds: 'CPU',
  requestsPerSecond: 'requests a second',
  p99Ms: 'p99',
} as const satisfies Partial<Record<Compared, string>>

/** Returns the p99 of each at one rate, then ours as a ratio to each other. */
export function pacedFiguresOf(standings: readonly Standing[], ours: string): readonly Figure[] {
  const others = standings.filter(({ id }) => id !== ours)
  return [
    ...standings.map(
      ({ id, title, median: { p99Ms } }): Figure => ({
        id: `${id}-paced-p99`,
        title: `${title}: p99 at the same rate`,
        value: p99Ms,
        unit: 'ms',
      }),
    ),
    ...others.map(
      ({ id, title, oursToIt }): Figure => ({
        id: `paced-p99-to-${id}`,
        title: `p99 at the same rate, ours to ${title}`,
        value: oursToIt.p99Ms,
        unit: 'ratio',
        ...(id === AIMED_AT && { aim: AIMS.p99Ms }),
      }),
    ),
  ]
}

/** Returns the figures of each, then ours as a ratio to each other. */
export function figuresOf(standings: readonly Standing[], ours: string): readonly Figure[] {
  const own = standings.flatMap(
    ({ id, title, median: { cpuSeconds, redisCpuSeconds, ...rest } }) => {
      const figure = (what: string, value: number, of: string, unit: Figure['unit']): Figure => ({
        id: `${id}-${what}`,
        title: `${title}: ${of}`,
        value,
        unit,
      })
      return [
        figure('rps', rest.requestsPerSecond, 'requests a second', '1/s'),
        figure('p50', rest.p50Ms, 'p50', 'ms'),
        figure('p99', rest.p99Ms, 'p99', 'ms'),
        figure('cpu-per-1000', cpuSeconds, 'CPU for 1,000 requests', 's'),
        figure('redis-cpu-per-1000', redisCpuSeconds, 'CPU of Redis for 1,000 requests', 's'),
      ]
    },
  )
  const others = standings.filter(({ id }) => id !== ours)
  const keys = Object.keys(RATIOS) as (keyof typeof RATIOS)[]
  const shares = others.flatMap(({ id, title, oursToIt }) =>
    keys.map(
      (key): Figure => ({
        id: `${RATIO_IDS[key]}-to-${id}`,
        title: `${RATIOS[key]}, ours to ${title}`,
        value: oursToIt[key],
        unit: 'ratio',
        ...(id === AIMED_AT && { aim: AIMS[key] }),
      }),
    ),
  )
  return [...own, ...shares]
}

const RATIO_IDS = { cpuSeconds: 'cpu', requestsPerSecond: 'rps', p99Ms: 'p99' } as const
