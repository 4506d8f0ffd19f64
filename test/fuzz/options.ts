/** Command-line options of `npm run fuzz:transport`. */
import { parseArgs } from 'node:util'
import { number, oneOf, seedOf } from '../../bench/command-line.ts'
import { FUZZ_RUNTIMES, type FuzzRuntime } from './gateways.ts'

export interface TransportOptions {
  readonly runtime: FuzzRuntime
  readonly seed: number
  readonly requests: number
  readonly minutes: number
  readonly lanes: number
}

const MAX_REQUESTS = 1_000_000
const MAX_MINUTES = 60
const MAX_LANES = 128

export const USAGE = `npm run fuzz:transport [-- options]

Sends requests whose client or origin aborts, resets, half-closes, stalls or answers early at a
random byte: with and without bodies, streams and WebSockets. Requests of well-behaved callers run
beside them. Checks each response, and that nothing is left over at the end: connections, file
descriptors, timers, slots of limits, requests in flight, and on Node audit events. Needs Linux.

  --runtime <name>   node or workerd (default: node)
  --requests <n>     cases, 1 to ${MAX_REQUESTS} (default: 10000; with --minutes: ${MAX_REQUESTS})
  --minutes <n>      ends after this time, 0.1 to ${MAX_MINUTES} (default: ${MAX_MINUTES})
  --lanes <n>        cases at a time, 1 to ${MAX_LANES} (default: 64)
  --seed <n>         seed of the cases (default: 1)
  --help

Exit code 1: something was wrong, or a process did not start. 2: invalid options.`

/** Parses the command line. Throws an `Error` of one line for invalid options. */
export function readOptions(argv: readonly string[]): TransportOptions | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      runtime: { type: 'string', default: 'node' },
      requests: { type: 'string' },
      minutes: { type: 'string' },
      lanes: { type: 'string', default: '64' },
      seed: { type: 'string', default: '1' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help'
  const usual = values.minutes === undefined ? '10000' : String(MAX_REQUESTS)
  return {
    runtime: oneOf('--runtime', values.runtime, FUZZ_RUNTIMES),
    requests: count('--requests', values.requests ?? usual, MAX_REQUESTS),
    minutes: number('--minutes', values.minutes ?? MAX_MINUTES, 0.1, MAX_MINUTES),
    lanes: count('--lanes', values.lanes, MAX_LANES),
    seed: seedOf(values.seed),
  }
}

function count(option: string, text: string, most: number): number {
  const value = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= 1 && value <= most))
    throw new Error(`${option} must be a whole number from 1 to ${most}`)
  return value
}
