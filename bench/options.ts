/** Command-line options of `npm run bench`. */
import { parseArgs } from 'node:util'
import { number, oneOf, whole } from './command-line.ts'
import { BASELINE, LAYERS, type Layer } from './layers/layers.ts'
import { type Effort, RUNTIMES, type Runtime } from './runtimes.ts'

const RELATIONS = 'relations'

export const REQUESTS = ['read', 'write'] as const
/** `read`: `GET /orders` with a query; `write`: `POST /orders` with a body. */
export type RequestKind = (typeof REQUESTS)[number]

/** How `layers`, `tokens` and profiles measure. Other scenarios have their own settings. */
export interface Detail {
  /** The first is always the baseline. */
  readonly layers: readonly Layer[]
  readonly request: RequestKind
  readonly seconds: number
  readonly warmUpSeconds: number
  readonly rounds: number
  readonly connections: number
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

/** The defaults. */
export const USUAL: Readonly<Record<Effort, Detail>> = {
  quick: {
    layers: LAYERS,
    request: 'read',
    connections: 20,
    seconds: 0.4,
    warmUpSeconds: 0.2,
    rounds: 1,
  },
  full: {
    layers: LAYERS,
    request: 'read',
    connections: 20,
    seconds: 1.5,
    warmUpSeconds: 0.5,
    rounds: 7,
  },
}

export const USAGE = `npm run bench [-- options]

  --list               prints the scenarios, and measures nothing
  --only <ids>         scenarios, separated by commas (default: all)
  --relations          the same as --only relations: relation checks, up to 1,000,000 tuples
  --quick              all scenarios within three minutes; rough
  --runtime <name>     workerd, wrangler or node (default: all of each scenario)
  --results <dir>      directory for the results (default: bench/results)
  --profile            CPU profile of the full pipeline (or of the last of --layers), by stage, and
                       its samples as a .cpuprofile; runs only the scenarios of --only.
                       With --runtime node: of the gateway on Node, by package and folder
  --help

For the scenarios \`layers\` and \`tokens\`, and for profiles:

  --layers <ids>       layers, separated by commas:
                       ${LAYERS.map(({ id }) => id).join(',')}
  --request <kind>     read: GET /orders?limit=20; write: POST /orders with a body (default: read)
  --seconds <n>        duration of one measurement, 0.2 to 60 (default: 1.5; quick: 0.4)
  --warm-up <n>        seconds of unmeasured load before, 0.2 to 60 (default: 0.5; quick: 0.2)
  --rounds <n>         measurements of each, in turn, 1 to 20 (default: 7; quick: 1)
  --connections <n>    1 to 200 (default: 20)

Reads CPU times from /proc, so it needs Linux.`

/** Parses the command line. Throws an `Error` of one line for invalid options. */
export function readOptions(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      list: { type: 'boolean' },
      only: { type: 'string' },
      relations: { type: 'boolean' },
      quick: { type: 'boolean' },
      runtime: { type: 'string' },
      results: { type: 'string' },
      profile: { type: 'boolean' },
      layers: { type: 'string' },
      request: { type: 'string' },
      seconds: { type: 'string' },
      'warm-up': { type: 'string' },
      rounds: { type: 'string' },
      connections: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help'
  const effort = values.quick ? 'quick' : 'full'
  const usual = USUAL[effort]
  const { runtime } = values
  if (values.relations && values.only !== undefined)
    throw new Error('--relations cannot be combined with --only')
  if (values.results === '') throw new Error('--results must name a directory')
  return {
    effort,
    only: values.relations ? [RELATIONS] : values.only?.split(','),
    runtime: runtime === undefined ? undefined : oneOf('--runtime', runtime, RUNTIMES),
    list: values.list ?? false,
    profile: values.profile ?? false,
    results: values.results,
    layers: chosenLayers(values.layers),
    request: oneOf('--request', values.request ?? usual.request, REQUESTS),
    seconds: number('--seconds', values.seconds ?? usual.seconds, 0.2, 60),
    warmUpSeconds: number('--warm-up', values['warm-up'] ?? usual.warmUpSeconds, 0.2, 60),
    rounds: whole('--rounds', values.rounds ?? usual.rounds, 1, 20),
    connections: whole('--connections', values.connections ?? usual.connections, 1, 200),
  }
}

function chosenLayers(names: string | undefined): readonly Layer[] {
  if (names === undefined) return LAYERS
  const ids = new Set([BASELINE, ...names.split(',')])
  for (const id of ids) {
    if (!LAYERS.some((layer) => layer.id === id)) throw new Error(`--layers: unknown layer "${id}"`)
  }
  return LAYERS.filter(({ id }) => ids.has(id))
}
