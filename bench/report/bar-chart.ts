/** Draws figures as a bar chart in SVG. A label has a line of its own, so that none is cut. */

export interface Bar {
  readonly label: string
  readonly value: number
  /** The first and the third quartile of the rounds. */
  readonly quartiles?: readonly [number, number] | undefined
  readonly aim?: number | undefined
  /** The value with its spread, for people. */
  readonly text: string
}

export interface BarChart {
  readonly title: string
  readonly description: string
  /** A value that the reader compares with, such as that of the bare proxy. */
  readonly reference: { readonly value: number; readonly text: string }
  readonly bars: readonly Bar[]
}

const WIDTH = 700
const LEFT = 20
/** Where the text of the largest bar begins. */
const INNER = 480
const TOP = 64
const ROW = 46
const BAR = 16
const LEGEND = 34
/** Between a bar, or its spread, and its text. */
const SPACE = 8

/** Returns the chart. Every bar begins at 0. */
export function drawBars({ title, description, reference, bars }: BarChart): string {
  const most = Math.max(
    reference.value,
    ...bars.flatMap(({ value, quartiles = [], aim = 0 }) => [value, ...quartiles, aim]),
  )
  const height = TOP + bars.length * ROW + LEGEND
  const width = (value: number) => (value * INNER) / most
  const x = (value: number) => (LEFT + width(value)).toFixed(1)
  const hasSpread = bars.some(({ quartiles }) => quartiles !== undefined)
  const hasAim = bars.some(({ aim }) => aim !== undefined)
  const rows = bars.map(({ label, value, quartiles, aim, text }, index) => {
    const top = TOP + index * ROW
    const y = top + 8
    const middle = y + BAR / 2
    const end = Math.max(value, reference.value, quartiles?.[1] ?? 0, aim ?? 0)
    return [
      `<text x="${LEFT}" y="${top}">${escaped(label)}</text>`,
      `<rect class="bar" x="${LEFT}" y="${y}" width="${width(value).toFixed(1)}" height="${BAR}"/>`,
      `<path class="reference" d="M${x(reference.value)} ${y - 3}v${BAR + 6}"/>`,
      ...(quartiles === undefined
        ? []
        : [
            `<path class="spread" d="M${x(quartiles[0])} ${middle}H${x(quartiles[1])}M${x(quartiles[0])} ${middle - 5}v10M${x(quartiles[1])} ${middle - 5}v10"/>`,
          ]),
      ...(aim === undefined ? [] : [`<path class="aim" d="M${x(aim)} ${y - 3}v${BAR + 6}"/>`]),
      `<text class="small" x="${(LEFT + width(end) + SPACE).toFixed(1)}" y="${middle}" dominant-baseline="middle">${escaped(text)}</text>`,
    ].join('\n  ')
  })
  const legend: readonly (readonly [style: string, text: string])[] = [
    ['reference', reference.text],
    ...(hasSpread ? ([['spread', 'quartiles of the rounds']] as const) : []),
    ...(hasAim ? ([['aim', 'aim']] as const) : []),
  ]
  const marks = legend.map(([style, text], index) => {
    const at = LEFT + 230 * index
    return `<path class="${style}" d="M${at} ${height - 18}h24"/><text class="small" x="${at + 32}" y="${height - 14}">${escaped(text)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc">
  <title id="title">${escaped(title)}</title>
  <desc id="desc">${escaped(description)}</desc>
  <style>
    rect.panel { fill: #ffffff; stroke: #d0d7de; }
    text { fill: #1f2328; font: 14px system-ui, sans-serif; }
    .small { font-size: 12px; fill: #4b535c; }
    .strong { font-weight: 600; }
    .bar { fill: #6cb2ff; }
    .reference { fill: none; stroke: #57606a; stroke-dasharray: 3 3; }
    .spread { fill: none; stroke: #1f2328; stroke-width: 1.5; }
    .aim { fill: none; stroke: #b3261e; stroke-width: 2.5; }
    @media (prefers-color-scheme: dark) {
      rect.panel { fill: #161b22; stroke: #3d444d; }
      text { fill: #e6edf3; }
      .small { fill: #b1bac4; }
      .bar { fill: #0b5cad; }
      .reference { stroke: #b1bac4; }
      .spread { stroke: #e6edf3; }
      .aim { stroke: #ff8f86; }
    }
  </style>
  <rect class="panel" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="6"/>
  <text class="strong" x="${LEFT}" y="30">${escaped(title)}</text>
  ${rows.join('\n  ')}
  ${marks.join('\n  ')}
</svg>
`
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
