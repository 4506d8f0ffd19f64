/** From levels and moments to figures, tables and plots. */
import type { TokenFormat } from '../../src/tokens/access-grant.ts'
import type { Figure, Plot, ScenarioResult } from '../scenario.ts'
import { MAX_SLOPE_MB_PER_MINUTE, type Slope, slopeOf } from '../soak/memory.ts'
import { rounded } from '../statistics.ts'
import { type Level, type Moment, SLACK } from './measure.ts'

const BYTES_PER_KILOBYTE = 1_024
const BYTES_PER_MEGABYTE = 1_048_576
const NAMES: Readonly<Record<TokenFormat, string>> = { jwt: 'JWT', opaque: 'opaque reference' }

/** What was found of one format. */
export interface Filled {
  readonly format: TokenFormat
  readonly levels: readonly Level[]
  /** Credentials that the cache holds by its own account, at most. */
  readonly fits: number
  /** More than that were shown, and the heap stayed within it. */
  readonly isBeyond: boolean
  readonly bytesEach: number
  /** Under load; none in a quick run. */
  readonly moments: readonly Moment[]
  readonly answered: number
  /** Requests that were answered 503 first, and made again. */
  readonly repeated: number
}

/** What the scenario hands over. */
export function resultOf(filled: readonly Filled[]): ScenarioResult {
  const moments = filled.flatMap((each) => each.moments)
  const slopes = {
    heap: slopeOf(moments.map(({ heap }) => heap)),
    resident: slopeOf(moments.map(({ resident }) => resident)),
  }
  const answers = filled.reduce((sum, { answered }) => sum + answered, 0)
  const repeated = filled.reduce((sum, each) => sum + each.repeated, 0)
  return {
    figures: [...filled.flatMap(figuresOf), ...slopeFigures(slopes)],
    checks: [
      { what: 'answers that were wrong', seen: `0 of ${answers.toLocaleString('en')}` },
      ...filled.flatMap(boundCheck),
    ],
    tables: [
      {
        title: 'After garbage collection, by credentials shown',
        headings: ['credential', 'shown', 'heap MB', 'resident MB of the process'],
        rows: filled.flatMap(({ format, levels }) =>
          levels.map(({ presented, heapBytes, residentBytes }) => [
            NAMES[format],
            presented.toLocaleString('en'),
            megabytes(heapBytes).toFixed(1),
            megabytes(residentBytes).toFixed(0),
          ]),
        ),
      },
    ],
    plots: [...filled.map(levelPlot), ...(moments.length > 0 ? [soakPlot(moments)] : [])],
    notes: [
      'Of the gateway as it ships: a session is the verified token in its cache, its principal, and the ' +
        'keys and the assertion that later stages keep with it. Sessions themselves are in Redis.',
      'The heap is what JavaScript holds; the resident memory is of the whole workerd process, with two ' +
        'isolates and the inspector, and holds what V8 has not given back.',
      ...(repeated > 0
        ? [`${repeated} requests were answered 503 on a machine that was busy, and made again.`]
        : []),
      ...(moments.length === 0
        ? ['A quick run does not fill the cache, and says nothing of how memory behaves over time.']
        : []),
    ],
    details: { filled, slopes },
  }
}

function figuresOf({ format, levels, bytesEach }: Filled): readonly Figure[] {
  const name = NAMES[format]
  return [
    {
      id: `${format}-bytes`,
      title: `Heap of one cached session, ${name}`,
      value: rounded(bytesEach / BYTES_PER_KILOBYTE, 2),
      unit: 'KB',
      beside: ['spacetime-session-memory'],
    },
    ...levels.map(
      ({ presented, heapBytes }): Figure => ({
        id: `${format}-heap-at-${presented}`,
        title: `Heap after ${presented.toLocaleString('en')} callers, ${name}`,
        value: rounded(megabytes(heapBytes), 1),
        unit: 'MB',
      }),
    ),
  ]
}

function slopeFigures(slopes: {
  readonly heap: Slope | undefined
  readonly resident: Slope | undefined
}): readonly Figure[] {
  const { heap, resident } = slopes
  return [
    ...(heap === undefined
      ? []
      : [
          {
            id: 'heap-slope',
            title: `Heap under load (+- ${heap.plusMinus})`,
            value: heap.mbPerMinute,
            unit: 'MB/min',
            beside: ['spacetime-soak'],
            aim: { at: 'most', value: MAX_SLOPE_MB_PER_MINUTE },
          } as const,
        ]),
    ...(resident === undefined
      ? []
      : [
          {
            id: 'resident-slope',
            title: `Resident memory under load (+- ${resident.plusMinus})`,
            value: resident.mbPerMinute,
            unit: 'MB/min',
            beside: ['spacetime-soak'],
          } as const,
        ]),
  ]
}

function boundCheck({ format, fits, isBeyond, levels }: Filled) {
  if (!isBeyond) return []
  const last = levels.at(-1)?.presented.toLocaleString('en')
  return [
    {
      what: `the heap after ${last} callers (${NAMES[format]})`,
      seen: `at most ${SLACK} times that of ${fits.toLocaleString('en')}, more than which the cache does not hold`,
    },
  ]
}

function levelPlot({ format, levels }: Filled): Plot {
  return {
    id: `${format}-heap`,
    title: `Heap by callers, ${NAMES[format]}`,
    kind: 'line',
    x: { title: 'callers' },
    y: { title: 'MB' },
    series: [
      {
        name: 'heap',
        points: levels.map(({ presented, heapBytes }) => [
          presented,
          rounded(megabytes(heapBytes), 2),
        ]),
      },
    ],
  }
}

function soakPlot(moments: readonly Moment[]): Plot {
  const line = (name: string, of: 'heap' | 'resident') => ({
    name,
    points: moments.map(
      (moment) => [rounded(moment[of].seconds, 1), rounded(moment[of].megabytes, 1)] as const,
    ),
  })
  return {
    id: 'under-load',
    title: 'Memory under load',
    kind: 'line',
    x: { title: 'seconds' },
    y: { title: 'MB' },
    series: [line('heap', 'heap'), line('resident', 'resident')],
  }
}

const megabytes = (bytes: number): number => bytes / BYTES_PER_MEGABYTE
