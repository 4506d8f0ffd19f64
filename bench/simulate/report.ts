/** Formats a simulated fleet: as text for a terminal, and as the committed page. */
import { markdownTable } from '../report/markdown.ts'
import { table } from '../text.ts'
import type { Cost } from './costs.ts'
import prices from './prices.json' with { type: 'json' }
import type { OutageRun, Simulated, Variant } from './simulate.ts'
import { callersOf, KINDS, TENANT_RATE } from './traffic.ts'

interface Part {
  readonly title: string
  readonly text?: string
  readonly headings: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

const whole = (value: number): string => Math.round(value).toLocaleString('en')
const fixed = (value: number, digits: number): string => value.toFixed(digits)
const percent = (value: number): string => `${fixed(value * 100, 1)} %`
const usd = (value: number): string => `$${Number(value.toPrecision(3)).toLocaleString('en')}`
const optional = (value: number | undefined, format: (value: number) => string): string =>
  value === undefined ? 'more than lanes' : format(value)

function sizes(variants: readonly Variant[]): Part {
  const row = (title: string, of: (variant: Variant) => string) => [title, ...variants.map(of)]
  const ifLeased = (of: (variant: Variant) => string) => (variant: Variant) =>
    variant.options.lease === undefined ? '-' : of(variant)
  return {
    title: 'Size',
    text:
      'With more masters than a quarter of the lanes, the load is uneven: some masters have more lanes than others, ' +
      'as the row of the mean shows. More lanes, chosen at the first start, need fewer masters.',
    headings: ['', ...variants.map(({ title }) => title)],
    rows: [
      row('commands for a request', ({ size }) => fixed(size.commandsPerRequest, 2)),
      row('commands a second, without the feed', ({ size }) => whole(size.commandsPerSecond)),
      row('reads of the feed a second', ({ size }) => whole(size.feedReadsPerSecond)),
      row('the same with one reader for each gateway', ({ size }) =>
        whole(size.feedReadsOfGateways),
      ),
      row('masters', ({ size }) => optional(size.masters, whole)),
      row('the same with one reader for each gateway', ({ size }) =>
        optional(size.mastersWithReaders, whole),
      ),
      row('commands a second at the busiest master', ({ size }) => whole(size.mostCommands)),
      row('the same to the mean of the masters', ({ size }) => fixed(size.mostToMean, 2)),
      row('traffic of Redis, Gbit/s', ({ size }) => fixed(size.gigabitsPerSecond, 1)),
      row('cores of the gateways', ({ size }) => whole(size.gatewayCores)),
      row('revocations; admissions after they returned', ({ counts }) =>
        [counts.revocations, counts.lateAdmissions].map(whole).join('; '),
      ),
      row('latest start of such an admission, ms', ({ counts }) => whole(counts.worstStalenessMs)),
      row('bound of this, ms', ({ options }) => whole(options.maxStalenessMs)),
      row('fullest period of a window, of its limit', ({ counts }) => percent(counts.worstWindow)),
      row('what callers above their limit get, of it', ({ counts }) => percent(counts.saturation)),
      row(
        'leased units that were used',
        ifLeased(({ counts }) => percent(counts.spent / Math.max(1, counts.granted))),
      ),
      row(
        'stranded units of a service, mean; most',
        ifLeased(({ counts }) =>
          [idleOf(counts.seconds), counts.worstIdle].map(percent).join('; '),
        ),
      ),
    ],
  }
}

function idleOf(seconds: OutageRun['counts']['seconds']): number {
  return seconds.reduce((sum, { idle }) => sum + idle, 0) / Math.max(1, seconds.length)
}

function costs(variants: readonly Variant[]): Part {
  const names = Object.keys(variants[0]?.size.monthly ?? {})
  return {
    title: 'Cost',
    text: 'USD a month at this rate, day and night, from the prices below.',
    headings: ['', ...variants.map(({ title }) => title)],
    rows: names.map((name) => [
      name,
      ...variants.map(({ size }) => optional(size.monthly[name], usd)),
    ]),
  }
}

/** Returns the seconds of an outage that differ most from those before it. */
function outages({ outages: runs, given, masters }: Simulated): Part {
  const part = (seconds: OutageRun['counts']['seconds']) =>
    seconds.reduce((sum, { unavailable }) => sum + unavailable, 0) /
    Math.max(
      1,
      seconds.reduce((sum, each) => sum + each.requests, 0),
    )
  const mean = (seconds: OutageRun['counts']['seconds']) =>
    seconds.reduce((sum, { calls }) => sum + calls, 0) / Math.max(1, seconds.length)
  const row = (title: string, of: (run: OutageRun) => string) => [title, ...runs.map(of)]
  const parts = ({ counts: { seconds }, options: { outage } }: OutageRun) => {
    const at = (outage?.atMs ?? 0) / 1000
    const failover = Math.ceil((outage?.failoverMs ?? 0) / 1000)
    return {
      before: seconds.slice(0, at),
      failover: seconds.slice(at, at + failover),
      rest: seconds.slice(at + failover, at + given.outageSeconds),
      after: seconds.slice(at + given.outageSeconds),
    }
  }
  return {
    title: 'Outage',
    text:
      `For ${given.outageSeconds} s, ${whole(Math.ceil(given.gateways / 3))} of ${whole(given.gateways)} gateways ` +
      `and ${whole(Math.ceil(masters / 3))} of ${whole(masters)} masters are lost. Their callers connect to other ` +
      'gateways at once. Replicas elsewhere become masters after the failover.',
    headings: ['', ...runs.map(({ title }) => title)],
    rows: [
      row('503 during the failover', (run) => percent(part(parts(run).failover))),
      row('503 in the rest of the outage', (run) => percent(part(parts(run).rest))),
      row('503 after it', (run) => percent(part(parts(run).after))),
      row('commands in the busiest second, to the mean before', (run) => {
        const most = Math.max(...run.counts.seconds.map(({ calls }) => calls))
        return fixed(most / mean(parts(run).before), 2)
      }),
      row('fullest period of a window, of its limit', ({ counts }) => percent(counts.worstWindow)),
      row('stranded units of a service, most', ({ counts }) => percent(counts.worstIdle)),
    ],
  }
}

function traffic({ given }: Simulated): Part {
  return {
    title: 'Traffic',
    text:
      'All of it is an assumption. Requests come at random times, over the connections of their caller. ' +
      `A tenant has ${TENANT_RATE} requests a second.`,
    headings: ['', 'of all requests', 'callers', 'requests a second of each', 'processes of each'],
    rows: KINDS.map((kind) => [
      kind.title,
      percent(kind.share),
      whole(callersOf(kind, given.rate)),
      String(kind.rate),
      String(kind.connections),
    ]),
  }
}

function inputs({ costs: all }: Simulated): Part {
  return {
    title: 'Measured costs',
    headings: ['', 'value', 'source'],
    rows: Object.values<Cost>(all).map(({ title, value, unit, source }) => [
      title,
      `${value.toLocaleString('en')} ${unit}`.trim(),
      source ?? 'assumption',
    ]),
  }
}

function priceList(): Part {
  return {
    title: 'Prices',
    text: prices.note,
    headings: ['', 'USD', 'date', 'source'],
    rows: Object.values(prices.prices).map(({ title, usd: value, date, source }) => [
      title,
      String(value),
      date,
      source ?? 'assumption',
    ]),
  }
}

const partsOf = (simulated: Simulated): readonly Part[] => [
  sizes(simulated.variants),
  outages(simulated),
  costs(simulated.variants),
  traffic(simulated),
  inputs(simulated),
  priceList(),
]

function introduction({ given, variants }: Simulated): readonly string[] {
  const [limits, lease] = [given.limits, given.lease]
  const sampled = whole(variants[0]?.counts.sampledRate ?? 0)
  return [
    `${whole(given.gateways)} gateways of ${given.processes} processes, ${whole(given.rate)} requests a second, ` +
      `${given.lanes} lanes. ` +
      `${limits.map(({ by, limit, windowSeconds }) => `${whole(limit)} units in ${windowSeconds} s by ${by}`).join(', ')}. ` +
      `Leased: at most ${lease.max} units for ${lease.ttlMs} ms, revocations at most ${given.stalenessMs} ms late.`,
    'The gateways run their own admission decision, leases and feed of revocations on a virtual clock. The windows and the feed ' +
      'of the servers are the specifications that the tests compare the scripts with.',
    `Scaled: ${sampled} requests a second are simulated, of whole tenants, for ${given.seconds} s. A simulated caller has the ` +
      'rate, limits and connections that it has in the fleet. Commands and units are multiplied; the lanes of all callers of the fleet are ' +
      'computed. Each process reads the feeds of all lanes together, twice in each maxStalenessMs. This number is computed, not simulated; the true one is not larger.',
    'Not simulated: queues and late replies, lost units of a failover, the moment between taking and refunding a unit, network outside of ' +
      'Redis, calls of operators, sessions and tokens.',
  ]
}

/** Returns the text for a terminal. */
export function textOf(simulated: Simulated): string {
  const parts = partsOf(simulated).map(({ title, text, headings, rows }) =>
    ['', title, '='.repeat(title.length), ...(text ? [text] : []), '', table(headings, rows)].join(
      '\n',
    ),
  )
  return [introduction(simulated).join('\n\n'), ...parts, ''].join('\n')
}

const code = (source: string): string => {
  if (source.startsWith('https://')) return `<${source}>`
  return /^(bench|docs)\//.test(source) ? linked(source) : source
}

/** Returns a link to the file that a source begins with, from a page in `docs/`. */
function linked(source: string): string {
  const [path = '', ...rest] = source.split(':')
  const target = path.startsWith('docs/') ? path.slice('docs/'.length) : `../${path}`
  return [`[${path.split('/').at(-1)}](${target})`, ...rest].join(':')
}

/** Returns the committed page. */
export function pageOf(simulated: Simulated): string {
  const [first, ...others] = introduction(simulated)
  const parts = partsOf(simulated).map(({ title, text, headings, rows }) =>
    [
      `## ${title}`,
      ...(text ? [text] : []),
      ...(title === 'Outage'
        ? [
            '![Answers and commands in each second of the outage, strict and leased](images/fleet.svg)',
          ]
        : []),
      markdownTable(
        headings,
        rows.map((row) => row.map(code)),
      ),
    ].join('\n\n'),
  )
  return `${[
    '# Simulated fleet',
    'What a large fleet of gateways needs and does, by simulation. `npm run simulate -- --report` writes this page; a test fails if it differs. ' +
      'Another fleet: `npm run simulate -- --gateways 20 --rate 50000`; all options: `npm run simulate -- --help`. ' +
      'A test compares the simulation with real gateways over Redis: their counts differ by at most 10 %.',
    first,
    ...others,
    ...parts,
  ].join('\n\n')}\n`
}
