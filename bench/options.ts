/** What `npm run bench` was asked for. */
import { parseArgs } from 'node:util'
import { BASELINE, LAYERS, type Layer } from './layers.ts'
import { CASE_IDS, type CaseId } from './token-costs/cases.ts'

export const RUNTIMES = ['workerd', 'wrangler'] as const
export type Runtime = (typeof RUNTIMES)[number]

export const REQUESTS = ['read', 'write'] as const
/** `read`: `GET /orders` with a query; `write`: `POST /orders` with a body. */
export type RequestKind = (typeof REQUESTS)[number]

export interface Options {
  readonly layers: boolean
  readonly profile: boolean
  /** Of tokens, to profile instead of the full pipeline. */
  readonly case: CaseId | undefined
  readonly tokens: boolean
  readonly runtimes: readonly Runtime[]
  /** What to measure; always begins with the baseline. */
  readonly measured: readonly Layer[]
  readonly request: RequestKind
  readonly seconds: number
  readonly warmUpSeconds: number
  readonly rounds: number
  readonly connections: number
  /** Of tokens: measures other languages on this machine, too. */
  readonly peers: boolean
  /** Where the results go instead of `bench/results/`; a directory. */
  readonly results: string | undefined
}

export const USAGE = `npm run bench [-- options]

  --layers             what each stage of the pipeline costs (what happens without a choice)
  --profile            where the CPU of the full pipeline goes, by function and by module
  --case <id>          with --profile: of what --tokens measures over HTTP, one of
                       ${CASE_IDS.slice(0, 5).join(', ')},
                       ${CASE_IDS.slice(5).join(', ')}
  --tokens             what issuing and validating tokens costs, beside Go and Python
  --quick              half a second each and one round, unless said otherwise
  --no-peers           with --tokens: without Go and Python
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

/** What holds where nothing is said. */
const THOROUGH = { seconds: '2', warmUp: '0.5', rounds: '3' }
const QUICK = { seconds: '0.5', warmUp: '0.5', rounds: '1' }

/** Throws an `Error` of one line for options that make no run. */
export function readOptions(argv: readonly string[]): Options | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      layers: { type: 'boolean' },
      profile: { type: 'boolean' },
      case: { type: 'string' },
      tokens: { type: 'boolean' },
      quick: { type: 'boolean' },
      'no-peers': { type: 'boolean' },
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
  const usual = values.quick ? QUICK : THOROUGH
  if (values.case !== undefined && !values.profile) throw new Error('--case needs --profile')
  if (values.results === '') throw new Error('--results must name a directory')
  return {
    layers: values.layers ?? !(values.profile || values.tokens),
    profile: values.profile ?? false,
    case: values.case === undefined ? undefined : oneOf('--case', values.case, CASE_IDS),
    tokens: values.tokens ?? false,
    peers: !values['no-peers'],
    runtimes: runtime === 'both' ? RUNTIMES : [runtime],
    measured: measuredLayers(values.only),
    request: oneOf('--request', values.request ?? 'read', REQUESTS),
    seconds: number('--seconds', values.seconds ?? usual.seconds, 0.2, 60),
    warmUpSeconds: number('--warm-up', values['warm-up'] ?? usual.warmUp, 0.2, 60),
    rounds: whole('--rounds', values.rounds ?? usual.rounds, 1, 20),
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
