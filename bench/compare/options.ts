/** What `npm run bench:compare` was asked for. */
import { parseArgs } from 'node:util'
import { number, oneOf, REQUESTS, type RequestKind, whole } from '../options.ts'
import { MIN_PAIRS } from './verdict.ts'

export interface CompareOptions {
  /** Revisions of git, or directories: what begins with `.` or `/`. */
  readonly base: string
  readonly head: string
  readonly pairs: number
  /** Length of one measurement of one of them, made up of slices. */
  readonly seconds: number
  readonly warmUpSeconds: number
  /** Percent more CPU that are still accepted. */
  readonly thresholdPercent: number
  /** Percent more CPU that HEAD is made to burn; 0: none. */
  readonly slowDownPercent: number
  readonly request: RequestKind
  readonly connections: number
  /** Where the results go; undefined: nowhere. A directory. */
  readonly results: string | undefined
}

export const USAGE = `npm run bench:compare -- BASE [HEAD] [options]

Tells whether HEAD (default: HEAD) takes more CPU for each request than BASE: whole gateways of
both under workerd serve, with the load, origin and Redis of this checkout, measured in turns.
Both are revisions of git, or directories where they begin with . or /, such as . for
what is not committed yet.

  --pairs <n>          measurements of each, ${MIN_PAIRS} to 99 (default: 12)
  --seconds <n>        length of one measurement, in slices that take turns, 0.5 to 60 (default: 2)
  --warm-up <n>        seconds each runs unmeasured before, 0.5 to 60 (default: 5)
  --threshold <n>      percent more CPU that are accepted, 1 to 1000 (default: 10)
  --request <kind>     read: GET /orders?limit=20; write: POST /orders with a body (default: read)
  --connections <n>    1 to 200 (default: 10)
  --slow-down <n>      makes HEAD burn so many percent more, 1 to 1000: shows what the gate catches
  --results <dir>      writes <date>-compare-<BASE>-<HEAD>.json there
  --help

Exit code 0: no slower than accepted. 1: slower, or something answered wrong, did not start or was
broken off. 2: the options make no run. 3: too noisy to tell. Reads CPU times from /proc, so it needs Linux.`

/** Throws an `Error` of one line for options that make no run. */
export function readOptions(argv: readonly string[]): CompareOptions | 'help' {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      pairs: { type: 'string', default: '12' },
      seconds: { type: 'string', default: '2' },
      'warm-up': { type: 'string', default: '5' },
      threshold: { type: 'string', default: '10' },
      request: { type: 'string', default: 'read' },
      connections: { type: 'string', default: '10' },
      'slow-down': { type: 'string' },
      results: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help'
  const [base, head = 'HEAD', ...more] = positionals
  if (base === undefined || base === '') throw new Error('BASE is missing')
  if (more.length > 0) throw new Error(`two are compared, and not "${more[0]}" too`)
  if (values.results === '') throw new Error('--results must name a directory')
  const slowDown = values['slow-down']
  return {
    base,
    head,
    pairs: whole('--pairs', values.pairs, MIN_PAIRS, 99),
    seconds: number('--seconds', values.seconds, 0.5, 60),
    warmUpSeconds: number('--warm-up', values['warm-up'], 0.5, 60),
    thresholdPercent: number('--threshold', values.threshold, 1, 1000),
    slowDownPercent: slowDown === undefined ? 0 : number('--slow-down', slowDown, 1, 1000),
    request: oneOf('--request', values.request, REQUESTS),
    connections: whole('--connections', values.connections, 1, 200),
    results: values.results,
  }
}
