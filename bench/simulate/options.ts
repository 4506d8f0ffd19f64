/** Command-line options of `npm run simulate`. */
import { parseArgs } from 'node:util'
import { MAX_LANES } from '../../src/redis/lanes.ts'
import { number, seedOf, whole } from '../command-line.ts'
import type { LimitTerms } from './experiment.ts'

const DEFAULTS = {
  gateways: '300',
  processes: '4',
  rate: '1000000',
  lanes: '256',
  limits: 'subject:1000/10,tenant:8000/10',
  lease: '50/2000',
  staleness: '1000',
  outage: '30',
  sample: '2000',
  seconds: '10',
  seed: '1',
} as const

export const USAGE = `npm run simulate [-- options]

Simulates a fleet of gateways on a virtual clock, with the gateway's own admission decision: strict,
with limits that callers share, leased, and while a third of the gateways and masters are lost.

  --gateways <n>      gateways, 1 to 10,000 (default: ${DEFAULTS.gateways})
  --processes <n>     processes of one gateway, 1 to 64 (default: ${DEFAULTS.processes})
  --rate <n>          requests of the fleet a second, 10 to 9,999,999 (default: ${DEFAULTS.rate})
  --lanes <n>         lanes of the cluster, 1 to ${MAX_LANES}; 1: one server (default: ${DEFAULTS.lanes})
  --masters <n>       masters of which an outage takes a third, at most as many as lanes
                      (default: as many as the strict fleet needs)
  --limits <list>     limits of each request, as <by>:<units>/<seconds>, the first by subject,
                      a second one by tenant (default: ${DEFAULTS.limits})
  --lease <max/ms>    units of one window that a process may lease, and for how long,
                      at most a quarter of the shortest window
                      (default: ${DEFAULTS.lease})
  --staleness <ms>    most age of the view of revocations, leased, 100 to 60,000
                      (default: ${DEFAULTS.staleness})
  --outage <s>        length of the outage, 5 to 120 (default: ${DEFAULTS.outage})
  --sample <n>        requests a second that are simulated, at most the rate (default: ${DEFAULTS.sample})
  --seconds <n>       counted seconds, after one window that is not, 1 to 600 (default: ${DEFAULTS.seconds})
  --seed <n>          seed of the random numbers; equal options give equal results (default: ${DEFAULTS.seed})
  --svg <file>        writes the plot of the outage
  --json              prints JSON
  --report            writes docs/fleet.md and docs/images/fleet.svg; only with the defaults
  --help

Exit code 1: a window exceeded its limit, or a revocation was late beyond the bound. 2: invalid
options.`

export type SimulateOptions = Readonly<Exclude<ReturnType<typeof readOptions>, 'help'>>

/** Parses the command line. Throws an `Error` of one line for invalid options. */
export function readOptions(argv: readonly string[]) {
  const text = (value: string) => ({ type: 'string', default: value }) as const
  const { values } = parseArgs({
    args: [...argv],
    options: {
      gateways: text(DEFAULTS.gateways),
      processes: text(DEFAULTS.processes),
      rate: text(DEFAULTS.rate),
      lanes: text(DEFAULTS.lanes),
      masters: { type: 'string' },
      limits: text(DEFAULTS.limits),
      lease: text(DEFAULTS.lease),
      staleness: text(DEFAULTS.staleness),
      outage: text(DEFAULTS.outage),
      sample: text(DEFAULTS.sample),
      seconds: text(DEFAULTS.seconds),
      seed: text(DEFAULTS.seed),
      svg: { type: 'string' },
      json: { type: 'boolean', default: false },
      report: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help' as const
  if (values.report && argv.length > 1)
    throw new Error('--report writes the committed report, so it takes no other options')
  if (values.svg === '') throw new Error('--svg must name a file')
  const rate = whole('--rate', values.rate, 10, 9_999_999)
  const lanes = whole('--lanes', values.lanes, 1, MAX_LANES)
  const { masters } = values
  const limits = limitsOf(values.limits)
  return {
    gateways: whole('--gateways', values.gateways, 1, 10_000),
    processes: whole('--processes', values.processes, 1, 64),
    ...{ rate, lanes, svg: values.svg, json: values.json, report: values.report },
    masters: masters === undefined ? undefined : whole('--masters', masters, 1, lanes),
    limits,
    lease: leaseOf(values.lease, limits),
    stalenessMs: whole('--staleness', values.staleness, 100, 60_000),
    outageSeconds: whole('--outage', values.outage, 5, 120),
    sample: number('--sample', Math.min(Number(values.sample), rate), 1, 100_000),
    seconds: whole('--seconds', values.seconds, 1, 600),
    seed: seedOf(values.seed),
  }
}

const MOST_UNITS = 9_999_999

function limitsOf(list: string): readonly LimitTerms[] {
  const limits = list.split(',').map((text): LimitTerms => {
    const [, by, units = '', seconds = ''] = /^(subject|tenant):(\d+)\/(\d+)$/.exec(text) ?? []
    if (by !== 'subject' && by !== 'tenant')
      throw new Error(`--limits: "${text}" is not <by>:<units>/<seconds>, such as subject:100/60`)
    return {
      by,
      limit: whole(`--limits: units of ${by}`, units, 1, MOST_UNITS),
      windowSeconds: whole(`--limits: seconds of ${by}`, seconds, 1, 600),
    }
  })
  const kinds = limits.map(({ by }) => by).join(',')
  if (kinds !== 'subject' && kinds !== 'subject,tenant')
    throw new Error('--limits needs one limit by subject, and then at most one by tenant')
  return limits
}

function leaseOf(text: string, limits: readonly LimitTerms[]) {
  const [, max = '', ttlMs = ''] = /^(\d+)\/(\d+)$/.exec(text) ?? []
  if (max === '') throw new Error('--lease must be <max>/<milliseconds>, such as 50/2000')
  // The same bound as in a policy.
  const most = Math.min(...limits.map(({ windowSeconds }) => windowSeconds * 250))
  if (Number(ttlMs) > most)
    throw new Error(
      `--lease: milliseconds must be at most a quarter of the shortest window, ${most}`,
    )
  return {
    max: whole('--lease: units', max, 1, MOST_UNITS),
    ttlMs: whole('--lease: milliseconds', ttlMs, 50, 600_000),
  }
}
