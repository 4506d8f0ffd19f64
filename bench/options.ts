/** What `npm run bench` was asked for. */
import { parseArgs } from 'node:util'
import { BASELINE, LAYERS, type Layer } from './layers.ts'

export const RUNTIMES = ['workerd', 'wrangler'] as const
export type Runtime = (typeof RUNTIMES)[number]

export const REQUESTS = ['read', 'write'] as const
/** `read`: `GET /orders` with a query; `write`: `POST /orders` with a body. */
export type RequestKind = (typeof REQUESTS)[number]

export interface Options {
  readonly layers: boolean
  readonly profile: boolean
  readonly runtimes: readonly Runtime[]
  /** What to measure; always begins with the baseline. */
  readonly measured: readonly Layer[]
  readonly request: RequestKind
  readonly seconds: number
  readonly warmUpSeconds: number
  readonly rounds: number
  readonly connections: number
  /** Where the results go instead of `bench/results/`; a directory. */
  readonly results: string | undefined
}

export const USAGE = `npm run bench [-- options]

  --layers             what each stage of the pipeline costs (what happens without a choice)
  --profile            where the CPU of the full pipeline goes, by function and by module
  --runtime <name>     workerd, wrangler or both (default: both)
  --only <ids>         some layers, with commas: ${LAYERS.map(({ id }) => id).join(',')}
  --request <kind>     read: GET /orders?limit=20; write: POST /orders with a body (default: read)
  --seconds <n>        length of one measurement, 0.2 to 60 (default: 2)
  --warm-up <n>        seconds each layer runs unmeasured before, 0.2 to 60 (default: 0.5)
  --rounds <n>         measurements of each layer, in turn, 1 to 20 (default: 3)
  --connections <n>    1 to 200 (default: 20)
  --results <dir>      where the results go (default: bench/results)
  --help

Reads CPU times from /proc, so it needs Linux.`

/** Throws an `Error` of one line for options that make no run. */
export function readOptions(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      layers: { type: 'boolean' },
      profile: { type: 'boolean' },
      runtime: { type: 'string' },
      only: { type: 'string' },
      request: { type: 'string' },
      seconds: { type: 'string' },
      'warm-up': { type: 'string' },
      rounds: { type: 'string' },
      connections: { type: 'string' },
      results: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help'
  const runtime = oneOf('--runtime', values.runtime ?? 'both', [...RUNTIMES, 'both'])
  if (values.results === '') throw new Error('--results must name a directory')
  return {
    layers: values.layers ?? !values.profile,
    profile: values.profile ?? false,
    runtimes: runtime === 'both' ? RUNTIMES : [runtime],
    measured: measuredLayers(values.only),
    request: oneOf('--request', values.request ?? 'read', REQUESTS),
    seconds: number('--seconds', values.seconds ?? '2', 0.2, 60),
    warmUpSeconds: number('--warm-up', values['warm-up'] ?? '0.5', 0.2, 60),
    rounds: whole('--rounds', values.rounds ?? '3', 1, 20),
    connections: whole('--connections', values.connections ?? '20', 1, 200),
    results: values.results,
  }
}

function measuredLayers(only: string | undefined): readonly Layer[] {
  if (only === undefined) return LAYERS
  const ids = new Set([BASELINE, ...only.split(',')])
  for (const id of ids) {
    if (!LAYERS.some((layer) => layer.id === id)) throw new Error(`--only: there is no "${id}"`)
  }
  return LAYERS.filter(({ id }) => ids.has(id))
}

function oneOf<Name extends string>(option: string, value: string, names: readonly Name[]): Name {
  const found = names.find((name) => name === value)
  if (found === undefined) throw new Error(`${option} must be one of ${names.join(', ')}`)
  return found
}

function number(option: string, text: string, least: number, most: number): number {
  const value = /^\d{1,4}(\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= least && value <= most))
    throw new Error(`${option} must be a number from ${least} to ${most}`)
  return value
}

function whole(option: string, text: string, least: number, most: number): number {
  const value = number(option, text, least, most)
  if (!Number.isInteger(value)) throw new Error(`${option} must be a whole number`)
  return value
}
