/** Generates plots as SVG that is embedded in a page with others. Needs no browser. */
import { init } from 'echarts'
import type { Plot } from '../scenario.ts'
import { numberText } from './format.ts'
import { escapeHtml, type Html, html, trusted } from './html.ts'

const WIDTH = 760
const LINES_HEIGHT = 360
/** Heights of bar plots: frame, one category, and each further bar of a category. */
const FRAME_HEIGHT = 75
const CATEGORY_HEIGHT = 18
const BAR_HEIGHT = 15
const LABEL_WIDTH = 170
/** Distinct colours, also for colour-blind people (Okabe and Ito), none too pale. */
const COLOURS = [
  ...['#0072b2', '#d55e00', '#009e73', '#a0468a', '#b07d00'],
  ...['#3d9ad1', '#444a57', '#7a9a01', '#8c2d04', '#6a51a3'],
]
/** Series with the same colour in every plot. */
const FIXED: ReadonlyMap<string, string> = new Map(
  ['p50', 'p95', 'p99', 'p999'].map((name, index) => [name, COLOURS[index] as string]),
)

/** Returns one colour for each series. Throws a `RangeError` if there are more series than colours. */
export function coloursOf(series: readonly { readonly name: string }[]): readonly string[] {
  const taken = new Set(series.map(({ name }) => FIXED.get(name)))
  const free = COLOURS.filter((colour) => !taken.has(colour)).values()
  return series.map(({ name }) => {
    const colour = FIXED.get(name) ?? free.next().value
    if (colour === undefined) throw new RangeError(`no colour for the series ${name}`)
    return colour
  })
}

const INK = '#1d2433'
const FAINT = '#dfe3ea'
type Points = Plot['series'][number]['points']

/** Returns the plot as an image. `anchor` makes its ids unique in the page. */
export function plotSvg(plot: Plot, anchor: string): Html {
  const height = heightOf(plot)
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height })
  try {
    chart.setOption({
      animation: false,
      color: [...coloursOf(plot.series)],
      textStyle: { fontFamily: 'system-ui, sans-serif', color: INK },
      ...(plot.kind === 'line' ? lines(plot) : bars(plot)),
    })
    return trusted(embeddable(chart.renderToSVGString(), plot, anchor))
  } finally {
    chart.dispose()
  }
}

/** Returns the legend, outside of the image: only a browser knows the width of a text. */
export function legendOf({ series }: Plot): Html {
  const colours = coloursOf(series)
  return html`<ul class="legend" aria-hidden="true">${series.map(
    ({ name }, index) => html`<li><i style="background: ${colours[index]}"></i>${name}</li>`,
  )}</ul>`
}

function altText({ title, kind, x, y, series }: Plot): string {
  const against = kind === 'line' ? `${y.title} against ${x.title}` : y.title
  return `${title}: ${against}, for ${series.map(({ name }) => name).join(', ')}`
}

function heightOf(plot: Plot): number {
  const { kind, categories = [], series } = plot
  if (kind === 'line') return LINES_HEIGHT
  const bars = kind === 'stacked' ? 1 : series.length
  return FRAME_HEIGHT + categories.length * (CATEGORY_HEIGHT + bars * BAR_HEIGHT)
}

function lines(plot: Plot) {
  const { x, y, series, bands = [] } = plot
  const axis = ({ title, log }: Plot['x']) => ({
    type: log === true ? 'log' : 'value',
    name: title,
    nameTextStyle: { color: INK },
    splitLine: { lineStyle: { color: FAINT } },
    axisLabel: { formatter: numberText, hideOverlap: true },
  })
  return {
    grid: { left: 70, right: 30, top: 40, bottom: 60 },
    xAxis: { ...axis(x), scale: true, nameLocation: 'middle', nameGap: 32 },
    yAxis: { ...axis(y), nameTextStyle: { align: 'left', color: INK } },
    series: series.map(({ name, points }, index) => ({
      type: 'line',
      name,
      data: pairsOf(points).filter(([at, value]) => drawable(at, x) && drawable(value, y)),
      showSymbol: points.length <= 40,
      symbolSize: 6,
      lineStyle: { width: points.length <= 40 ? 2 : 1 },
      ...(index === 0 && bands.length > 0 && { markArea: areaOf(bands) }),
    })),
  }
}

/** Returns coloured areas in the background, such as the time of a fault. */
const areaOf = (bands: NonNullable<Plot['bands']>) => ({
  silent: true,
  itemStyle: { color: FAINT, opacity: 0.6 },
  label: { rotate: 90, position: 'insideTop', align: 'right', fontSize: 9, color: INK },
  data: bands.map(({ name, from, to }) => [{ name, xAxis: from }, { xAxis: to }]),
})

/** A logarithmic axis has no zero. */
const drawable = (value: number, { log }: Plot['x']) => log !== true || value > 0

const pairsOf = (points: Points) => points.filter((point) => Array.isArray(point))

/** Returns horizontal bars, because names are long. */
function bars(plot: Plot) {
  const { kind, y, categories = [], series } = plot
  const stacked = kind === 'stacked'
  return {
    grid: { left: LABEL_WIDTH + 20, right: 60, top: 8, bottom: 50 },
    xAxis: {
      type: y.log === true ? 'log' : 'value',
      name: y.title,
      nameLocation: 'middle',
      nameGap: 30,
      nameTextStyle: { color: INK },
      splitLine: { lineStyle: { color: FAINT } },
      axisLabel: { formatter: numberText, hideOverlap: true },
    },
    yAxis: {
      type: 'category',
      data: categories,
      inverse: true,
      axisTick: { show: false },
      axisLabel: { width: LABEL_WIDTH, overflow: 'break', fontSize: 13, color: INK, interval: 0 },
    },
    series: series.map(({ name, points }) => ({
      type: 'bar',
      name,
      data: points.map((value) => (typeof value === 'number' && drawable(value, y) ? value : '-')),
      barMaxWidth: 22,
      ...(stacked
        ? { stack: 'all' }
        : { label: { show: true, position: 'right', formatter: labelOf, color: INK } }),
    })),
  }
}

const labelOf = ({ value }: { readonly value: unknown }) =>
  typeof value === 'number' ? numberText(value) : ''

/** Removes parts for a mouse pointer, and makes the ids unique. */
function embeddable(svg: string, plot: Plot, anchor: string): string {
  const label = escapeHtml(altText(plot))
  return svg
    .replace(/<style >[\s\S]*?<\/style>\n?/g, '')
    .replace(/ (?:class="zr\d+-cls-\d+"|ecmeta_\w+="[^"]*"|pointer-events="\w+")/g, '')
    .replace(/\bzr\d+-/g, `${anchor}-${plot.id}-`)
    .replace(
      /^<svg width="(\d+)" height="(\d+)"[^>]*>/,
      (_, width, height) =>
        `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">`,
    )
}

/** Returns the plot's numbers: a row for each category, or for each x of any line. */
export function dataOf({ kind, categories = [], series }: Plot): readonly (readonly string[])[] {
  const textOf = (value: unknown) => (typeof value === 'number' ? numberText(value) : '-')
  if (kind !== 'line') {
    return categories.map((category, index) => [
      category,
      ...series.map(({ points }) => textOf(points[index])),
    ])
  }
  const lines = series.map(
    ({ points }) => new Map(points.filter((point) => Array.isArray(point)) as [number, number][]),
  )
  const places = [...new Set(lines.flatMap((line) => [...line.keys()]))].sort((a, b) => a - b)
  return places.map((x) => [numberText(x), ...lines.map((line) => textOf(line.get(x)))])
}
