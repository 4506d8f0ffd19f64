/** Draws the seconds of an outage as SVG. */
import type { Second } from './experiment.ts'
import type { Simulated } from './simulate.ts'

const WIDTH = 700
const PANEL = 150
const GAP = 58
const LEFT = 60
const TOP = 34
const INNER = WIDTH - LEFT - 20

interface Line {
  readonly title: string
  readonly style: string
  readonly of: (second: Second) => number
}

const LINES: readonly Line[] = [
  { title: 'admitted', style: 'good', of: ({ requests, admitted }) => admitted / requests },
  { title: '503', style: 'bad', of: ({ requests, unavailable }) => unavailable / requests },
  { title: '429', style: 'limit', of: ({ requests, limited }) => limited / requests },
  {
    title: 'commands for a request',
    style: 'calls',
    of: ({ requests, calls }) => calls / requests,
  },
]

/** Returns the plot: parts of the requests of each second, a panel for each way to decide. */
export function plotOf({ outages, given }: Simulated): string {
  const height = TOP + outages.length * (PANEL + GAP)
  const panels = outages.map(({ title, counts: { seconds }, options }, index) => {
    const top = TOP + index * (PANEL + GAP)
    const most = Math.max(1, ...LINES.flatMap(({ of }) => seconds.map(of)))
    const x = (second: number) => (LEFT + (second * INNER) / seconds.length).toFixed(1)
    const y = (value: number) => (top + PANEL - (value * PANEL) / most).toFixed(1)
    const from = (options.outage?.atMs ?? 0) / 1000
    const till = from + given.outageSeconds
    const marks = [0, from, till, seconds.length]
    return [
      `<text class="strong" x="${LEFT}" y="${top - 10}">${title}</text>`,
      `<rect class="outage" x="${x(from)}" y="${top}" width="${((given.outageSeconds * INNER) / seconds.length).toFixed(1)}" height="${PANEL}"/>`,
      ...[0, 0.5, 1].map(
        (value) =>
          `<path class="grid" d="M${LEFT} ${y(value)}H${LEFT + INNER}"/><text class="small" x="${LEFT - 8}" y="${y(value)}" text-anchor="end" dominant-baseline="middle">${value}</text>`,
      ),
      ...marks.map(
        (second) =>
          `<text class="small" x="${x(second)}" y="${top + PANEL + 16}" text-anchor="middle">${second} s</text>`,
      ),
      ...LINES.map(
        ({ style, of }) =>
          `<polyline class="line ${style}" points="${seconds.map((second, at) => `${x(at + 0.5)},${y(of(second))}`).join(' ')}"/>`,
      ),
    ].join('\n  ')
  })
  const legend = LINES.map(
    ({ title, style }, index) =>
      `<path class="line ${style}" d="M${LEFT + 150 * index} ${height - 12}h24"/><text class="small" x="${LEFT + 150 * index + 30}" y="${height - 8}">${title}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc">
  <title id="title">An outage of a third of the gateways and masters</title>
  <desc id="desc">For each second and both ways to decide: the parts of the requests that are admitted, refused with 503 and refused with 429, and the commands of Redis for a request. The outage is shaded.</desc>
  <style>
    rect.panel { fill: #ffffff; stroke: #d0d7de; }
    text { fill: #1f2328; font: 14px system-ui, sans-serif; }
    .small { font-size: 12px; fill: #4b535c; }
    .strong { font-weight: 600; }
    .grid { stroke: #d0d7de; }
    .outage { fill: #57606a; opacity: 0.12; }
    .line { fill: none; stroke-width: 2; }
    .good { stroke: #1a7f37; }
    .bad { stroke: #b3261e; stroke-dasharray: 6 3; }
    .limit { stroke: #9a6700; stroke-dasharray: 2 3; }
    .calls { stroke: #0b5cad; stroke-width: 1.5; }
    @media (prefers-color-scheme: dark) {
      rect.panel { fill: #161b22; stroke: #3d444d; }
      text { fill: #e6edf3; }
      .small { fill: #b1bac4; }
      .grid { stroke: #3d444d; }
      .outage { fill: #b1bac4; }
      .good { stroke: #57d27a; }
      .bad { stroke: #ff8f86; }
      .limit { stroke: #e3b341; }
      .calls { stroke: #6cb2ff; }
    }
  </style>
  <rect class="panel" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="6"/>
  ${[...panels, ...legend].join('\n  ')}
</svg>
`
}
