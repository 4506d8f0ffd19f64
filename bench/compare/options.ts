/** Command-line options of `npm run bench:compare`. */
import { parseArgs } from 'node:util'
import { number, oneOf, whole } from '../command-line.ts'
import { REQUESTS } from '../load/questions.ts'
import { RUNTIMES } from '../runtimes.ts'

/** Fewer starts have no interval with a confidence of 95 %: 1 - 2 / 2^5 is 0.94. */
export const MIN_STARTS = 6

export const USAGE = `npm run bench:compare -- BASE [HEAD] [options]

Reports whether HEAD (default: HEAD) uses more CPU per request than BASE: whole gateways of both,
with the load, origin and Redis of this checkout, measured in turn. Both are revisions of git, or
directories if they begin with . or /, such as . for uncommitted changes.

  --runtime <name>     workerd or node (default: workerd)
  --durable            stores audit events in SQLite; CPU counts until all are stored. Only on Node

  --starts <n>         new processes of both, ${MIN_STARTS} to 99 (default: 8): two of one revision can differ by 16 %
  --pairs <n>          measurements of each start, 1 to 99 (default: 2)
  --seconds <n>        duration of one measurement, in slices that take turns, 0.5 to 60 (default: 2)
  --warm-up <n>        seconds of unmeasured load before, 0.5 to 60 (default: 5)
  --threshold <n>      accepted increase of CPU in percent, 1 to 1000 (default: 10)
  --request <kind>     read: GET /orders?limit=20; write: POST /orders with a body (default: read)
  --connections <n>    1 to 200 (default: 10)
  --slow-down <n>      slows HEAD down by a percentage, 1 to 1000: tests the command. Not on Node
  --results <dir>      writes <date>-compare-<BASE>-<HEAD>.json there
  --markdown <file>    adds the verdict to this file, for a comment on a pull request
  --help

Exit code 0: ok. 1: a regression, a wrong response, a process that did not start, or an interrupted
run. 2: invalid options. 3: too noisy to decide. Reads CPU times from /proc, so it needs Linux.`

export type CompareOptions = Readonly<Exclude<ReturnType<typeof readOptions>, 'help'>>

/** Parses the command line. Throws an `Error` of one line for invalid options. */
export function readOptions(argv: readonly string[]) {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      starts: { type: 'string', default: '8' },
      pairs: { type: 'string', default: '2' },
      seconds: { type: 'string', default: '2' },
      'warm-up': { type: 'string', default: '5' },
      threshold: { type: 'string', default: '10' },
      request: { type: 'string', default: 'read' },
      connections: { type: 'string', default: '10' },
      'slow-down': { type: 'string' },
      runtime: { type: 'string', default: 'workerd' },
      durable: { type: 'boolean', default: false },
      results: { type: 'string' },
      markdown: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help' as const
  const [base, head = 'HEAD', ...more] = positionals
  if (base === undefined || base === '') throw new Error('BASE is missing')
  if (more.length > 0) throw new Error(`unexpected argument "${more[0]}"`)
  if (values.results === '') throw new Error('--results must name a directory')
  if (values.markdown === '') throw new Error('--markdown must name a file')
  const runtime = oneOf('--runtime', values.runtime, RUNTIMES)
  if (values.durable && runtime !== 'node') throw new Error('--durable needs --runtime node')
  if (values['slow-down'] !== undefined && runtime === 'node')
    throw new Error('--slow-down needs --runtime workerd')
  const slowDown = values['slow-down']
  return {
    base,
    head,
    starts: whole('--starts', values.starts, MIN_STARTS, 99),
    pairs: whole('--pairs', values.pairs, 1, 99),
    seconds: number('--seconds', values.seconds, 0.5, 60),
    warmUpSeconds: number('--warm-up', values['warm-up'], 0.5, 60),
    thresholdPercent: number('--threshold', values.threshold, 1, 1000),
    slowDownPercent: slowDown === undefined ? 0 : number('--slow-down', slowDown, 1, 1000),
    request: oneOf('--request', values.request, REQUESTS),
    connections: whole('--connections', values.connections, 1, 200),
    runtime,
    durable: values.durable,
    results: values.results,
    markdown: values.markdown,
  }
}
