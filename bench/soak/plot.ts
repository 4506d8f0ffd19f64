/** Plots a soak: latency, responses and memory over time, with the faults in the background. */
import { init } from 'echarts'
import type { SoakResult } from './result.ts'

const WIDTH = 1_400
const PANEL_HEIGHT = 210
const TOP = 90
const GAP = 70
const SIDE = 80
const RIGHT = 40
const COLOURS = {
  redis: '#d9534f',
  keys: '#8e6bbf',
  origin: '#e0a030',
  gateway: '#555555',
} as const

interface Panel {
  readonly name: string
  readonly axis: 'log' | 'value'
  readonly lines: readonly {
    readonly name: string
    readonly values: readonly (readonly [seconds: number, value: number | null])[]
    readonly colour: string
    readonly stack?: string
  }[]
}

/** Returns an SVG document. Needs no browser. */
export function plotSoak(result: SoakResult): string {
  const panels = panelsOf(result)
  const height = TOP + panels.length * (PANEL_HEIGHT + GAP)
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height })
  const last = result.series.answers.length
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    title: { text: titleOf(result), subtext: subtitleOf(result), left: SIDE - 10, top: 8 },
    legend: panels.map((panel, index) => ({
      data: panel.lines.map(({ name }) => name),
      right: RIGHT,
      top: topOf(index) - 28,
      itemHeight: 8,
    })),
    grid: panels.map((_, index) => ({
      left: SIDE,
      right: RIGHT,
      top: topOf(index),
      height: PANEL_HEIGHT,
    })),
    xAxis: panels.map((_, index) => ({
      gridIndex: index,
      type: 'value',
      min: 0,
      max: last,
      axisLabel: { formatter: clock },
      interval: last > 240 ? 60 : 10,
    })),
    yAxis: panels.map((panel, index) => ({
      gridIndex: index,
      type: panel.axis,
      name: panel.name,
      nameLocation: 'end',
      nameTextStyle: { align: 'left' },
      ...(panel.axis === 'value' && { min: 0 }),
    })),
    series: panels.flatMap((panel, index) => [
      ...panel.lines.map(({ name, values, colour, stack }) => ({
        type: 'line',
        name,
        xAxisIndex: index,
        yAxisIndex: index,
        showSymbol: false,
        connectNulls: false,
        data: values,
        lineStyle: { width: stack === undefined ? 1.3 : 0, color: colour },
        itemStyle: { color: colour },
        ...(stack !== undefined && { stack, areaStyle: { color: colour, opacity: 0.75 } }),
      })),
      bandsOf(result, index),
    ]),
  })
  const svg = chart.renderToSVGString()
  chart.dispose()
  return svg
}

function panelsOf({ series, memory }: SoakResult): readonly Panel[] {
  const over = (values: readonly (number | null)[]) =>
    values.map((value, second) => [second, value] as const)
  return [
    {
      name: 'latency, ms',
      axis: 'log',
      lines: [
        { name: 'p50', values: over(series.p50Ms.map(drawable)), colour: '#7fb3e6' },
        { name: 'p95', values: over(series.p95Ms.map(drawable)), colour: '#2f7ed8' },
        { name: 'p99', values: over(series.p99Ms.map(drawable)), colour: '#0b3d78' },
      ],
    },
    {
      name: 'answers a second',
      axis: 'value',
      lines: [
        { name: '2xx', values: over(series.ok), colour: '#5cb85c', stack: 'answers' },
        { name: '4xx', values: over(series.refused), colour: '#b8c4d0', stack: 'answers' },
        { name: '5xx', values: over(series.failed), colour: '#d9534f', stack: 'answers' },
        { name: 'no answer', values: over(series.none), colour: '#333333', stack: 'answers' },
      ],
    },
    {
      name: "heap of the gateway's isolate, MB",
      axis: 'value',
      lines: memoryLines(memory, 'heap', 'gateway'),
    },
    {
      name: 'resident memory of workerd, with D1 and queue, MB',
      axis: 'value',
      lines: memoryLines(memory, 'resident', 'workerd'),
    },
  ]
}

function memoryLines(
  { gateways }: SoakResult['memory'],
  of: 'heap' | 'resident',
  name: string,
): Panel['lines'] {
  return gateways.map((gateway, index) => ({
    name: `${name} ${index + 1}`,
    values: gateway[of].samples.map(([seconds, megabytes]) => [seconds, megabytes] as const),
    colour: ['#2f7ed8', '#e07b39'][index] ?? '#000000',
  }))
}

/** A logarithmic axis has no zero. */
const drawable = (ms: number | null) => (ms === null ? null : Math.max(ms, 0.5))

function bandsOf({ faults }: SoakResult, index: number) {
  return {
    type: 'line',
    xAxisIndex: index,
    yAxisIndex: index,
    data: [],
    markArea: {
      silent: true,
      label: {
        show: index === 0,
        position: 'insideTop',
        rotate: 90,
        align: 'right',
        verticalAlign: 'middle',
        fontSize: 9,
        color: '#333333',
        distance: 4,
      },
      data: faults.map(({ name, startSeconds, endSeconds }) => {
        const place = (name.split('-')[0] ?? 'gateway') as keyof typeof COLOURS
        return [
          { name, xAxis: startSeconds, itemStyle: { color: COLOURS[place], opacity: 0.16 } },
          { xAxis: endSeconds },
        ]
      }),
    },
  }
}

const topOf = (index: number) => TOP + index * (PANEL_HEIGHT + GAP)

const clock = (seconds: number) =>
  `${Math.floor(seconds / 60)}:${String(Math.round(seconds % 60)).padStart(2, '0')}`

const titleOf = ({ date, options }: SoakResult) =>
  `Soak of ${date.slice(0, 'yyyy-mm-dd'.length)}: ${options.minutes} minutes, faults rotating`

const subtitleOf = ({ load, invariants, commit }: SoakResult) => {
  const failed = invariants.filter(({ holds }) => holds === false)
  const verdict =
    failed.length === 0
      ? 'all invariants hold'
      : `broken: ${failed.map(({ what }) => what).join(', ')}`
  return `${load.offeredPerSecond} requests a second offered, peak ${load.peakPerSecond ?? 'not measured'}; ${verdict}; ${commit.id}`
}
