/** The charts of the report: what a request costs, and how that grows. */
import { type Bar, drawBars } from './bar-chart.ts'
import { numberText, valueText } from './format.ts'
import type { Results } from './results.ts'
import type { Figure } from './schema.ts'

export interface Chart {
  /** Of its file, without the ending. */
  readonly name: string
  /** In place of the picture, for people who do not see it. */
  readonly alt: string
  readonly svg: string
}

/** Scenario, figure and label of each bar. */
const COSTS = [
  ['node', 'by-hand-log-to-bare', 'Node: a strong stack by hand, log lines'],
  ['node', 'log-to-bare', 'Node: Portcullis, log lines'],
  ['node', 'by-hand-durable-to-bare', 'Node: a strong stack by hand, durable audit'],
  ['node', 'durable-to-bare', 'Node: Portcullis, durable audit'],
  ['leases', 'platform-cpu', 'Workers: a proxy with the same calls to the platform'],
  ['leases', 'platform-redis-cpu', 'Workers: a proxy with these calls, and one to Redis'],
  ['leases', 'leased-cpu', 'Workers: Portcullis, leased'],
  ['leases', 'strict-cpu', 'Workers: Portcullis, strict'],
  ['leases', 'refused-no-token-cpu', 'Workers: Portcullis refuses a request without a token'],
  ['leases', 'refused-forged-token-cpu', 'Workers: Portcullis refuses a forged token'],
] as const satisfies readonly (readonly [scenario: string, figure: string, label: string])[]

/** The range, and the smallest and the largest size in it. */
const GROWTH = /^(([\d,]+) to ([\d,]+) .+): CPU of a request, factor per decade$/

/** Returns the charts for which the results have figures. */
export function chartsOf({ runs }: Results): readonly Chart[] {
  const figuresOf = (name: string): readonly Figure[] =>
    runs.find(({ measured }) => measured.scenario === name)?.measured.figures ?? []
  const costs = COSTS.flatMap(([scenario, id, label]) => {
    const figure = figuresOf(scenario).find((one) => one.id === id)
    return figure === undefined ? [] : [barOf(label, figure)]
  })
  const factors = figuresOf('growth').flatMap((figure) => {
    const [, label, least = '', most = ''] = GROWTH.exec(figure.title) ?? []
    if (label === undefined) return []
    const isDecade = sizeOf(most) >= 10 * sizeOf(least)
    return [barOf(isDecade ? label : `${label}, extrapolated`, figure)]
  })
  return [
    chartOf('cpu', {
      title: 'CPU of a request, as a multiple of that of a bare proxy',
      reference: { value: 1, text: 'a bare proxy' },
      bars: costs,
    }),
    chartOf('growth', {
      title: 'CPU of a request on Node: factor when a quantity grows tenfold',
      reference: { value: 1, text: 'no growth' },
      bars: factors,
    }),
  ].flat()
}

const sizeOf = (text: string): number => Number(text.replaceAll(',', ''))

const barOf = (label: string, figure: Figure): Bar => ({
  label,
  value: figure.value,
  quartiles: figure.quartiles,
  aim: figure.aim?.value,
  text: valueText(figure),
})

function chartOf(
  name: string,
  chart: Omit<Parameters<typeof drawBars>[0], 'description'>,
): readonly Chart[] {
  const { title, bars } = chart
  if (bars.length === 0) return []
  const values = bars.map(({ label, value }) => `${label}: ${numberText(value)}`).join('; ')
  return [{ name, alt: title, svg: drawBars({ ...chart, description: values }) }]
}
