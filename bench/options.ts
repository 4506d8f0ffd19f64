/** Command-line options of `npm run bench`. */
import { parseArgs } from 'node:util'
import { number, oneOf, whole } from './command-line.ts'
import { REQUESTS, type RequestKind } from './load/questions.ts'
import { type Effort, RUNTIMES, type Runtime } from './runtimes.ts'

/** How scenarios and profiles measure. Undefined: the scenario's own value. */
export interface Detail {
  readonly request: RequestKind
  readonly seconds?: number
  readonly warmUpSeconds?: number
  readonly rounds?: number
  readonly connections?: number
  /** The tables of `growth` or loops of `bursts`, not validated yet. Undefined: all. */
  readonly tables?: readonly string[]
  /** The largest size in a table of `growth`. */
  readonly most?: number
  /** Whether the profile is of a gateway with a durable audit trail. */
  readonly durable: boolean
}

export interface Options extends Detail {
  readonly effort: Effort
  /** Ids of scenarios, not validated yet. Undefined: all scenarios. */
  readonly only: readonly string[] | undefined
  /** The runtime. Undefined: each scenario's own. */
  readonly runtime: Runtime | undefined
  readonly list: boolean
  readonly profile: boolean
  /** Directory for results instead of `bench/results/`. */
  readonly results: string | undefined
}

export const USAGE = `npm run bench [-- options]

  --list               prints the scenarios, and measures nothing
  --only <ids>         scenarios, separated by commas (default: all)
  --quick              all scenarios within three minutes; rough
  --runtime <name>     workerd or node (default: all of each scenario)
  --results <dir>      directory for the results (default: bench/results)
  --profile            CPU profile of the gateway, by package and folder, and its samples as a
                       .cpuprofile; on Node unless --runtime says workerd. Runs only the scenarios
                       of --only
  --help

For the measurements:

  --seconds <n>        duration of one measurement, 0.2 to 60 (default: of each scenario)
  --warm-up <n>        seconds of load that is not measured before, 0.2 to 60
  --rounds <n>         measurements of each contestant, in turn, 1 to 20
  --connections <n>    1 to 200
  --tables <ids>       tables of \`growth\`, numbers of loops of \`bursts\`, with commas (default: all)
  --most <n>           the largest size in these tables, 1 to 9,999,999 (default: of each table)

For profiles:

  --request <kind>     read: GET /orders?limit=20; write: POST /orders with a body (default: read)
  --durable            with a durable audit trail, on Node

Reads CPU times from /proc, so it needs Linux.`

/** Parses the command line. Throws an `Error` of one line for invalid options. */
export function readOptions(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      list: { type: 'boolean' },
      only: { type: 'string' },
      quick: { type: 'boolean' },
      runtime: { type: 'string' },
      results: { type: 'string' },
      profile: { type: 'boolean' },
      request: { type: 'string', default: 'read' },
      durable: { type: 'boolean', default: false },
      seconds: { type: 'string' },
      'warm-up': { type: 'string' },
      rounds: { type: 'string' },
      connections: { type: 'string' },
      tables: { type: 'string' },
      most: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help'
  const { runtime, seconds, rounds, connections, tables, most } = values
  const warmUp = values['warm-up']
  if (values.results === '') throw new Error('--results must name a directory')
  return {
    effort: values.quick ? 'quick' : 'full',
    only: values.only?.split(','),
    runtime: runtime === undefined ? undefined : oneOf('--runtime', runtime, RUNTIMES),
    list: values.list ?? false,
    profile: values.profile ?? false,
    results: values.results,
    request: oneOf('--request', values.request, REQUESTS),
    durable: values.durable,
    ...(seconds !== undefined && { seconds: number('--seconds', seconds, 0.2, 60) }),
    ...(warmUp !== undefined && { warmUpSeconds: number('--warm-up', warmUp, 0.2, 60) }),
    ...(rounds !== undefined && { rounds: whole('--rounds', rounds, 1, 20) }),
    ...(connections !== undefined && {
      connections: whole('--connections', connections, 1, 200),
    }),
    ...(tables !== undefined && { tables: tables.split(',') }),
    ...(most !== undefined && { most: whole('--most', most, 1, 9_999_999) }),
  }
}
