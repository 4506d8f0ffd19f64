/** Command-line options of `npm run record`. */
import { parseArgs } from 'node:util'
import { columns, number, seedOf, someOf } from '../command-line.ts'
import { CLUSTER_FAULT_NAMES, FAULT_NAMES } from './faults.ts'

export const USAGE = `npm run record [-- options]

Starts four gateways, a workerd process each, over one Redis, each with its own fault proxy before
Redis. Sends requests under limits with and without leases, and revokes tokens in use, while links,
gateways and Redis fail. Records when each request was sent and answered, and when it reached the
origin. A checker then decides whether any rolling window exceeded its limit, whether a request was
admitted later than the staleness bound after a revocation, whether a refresh token had two successors
or was accepted after its end, and whether every response is explained.

  --cluster          gateways on Node, on a Redis Cluster of three masters with a replica each
  --seconds <n>      duration of the faults and the rests between them (default: 900)
  --window <n>       seconds of one fault and the rest before it (default: 26)
  --bursts <n>       seconds of bursts and overload before the faults (default: 40)
  --faults <names>   only these faults, separated by commas:
                     ${columns(FAULT_NAMES)}
                     with --cluster:
                     ${columns(CLUSTER_FAULT_NAMES)}
  --revocations <n>  revocations a second (default: 10)
  --seed <n>         seed of requests, revocations and faults (default: 1)
  --results <dir>    directory for <date>-record.json (default: bench/results)
  --history <file>   writes the history, gzipped lines of JSON
  --help

Without a redis-server on the PATH, Redis is not killed. Exit code 1: a violation, an unexplained
response, or a process that did not start. 2: invalid options.`

export type RecordOptions = Readonly<Exclude<ReturnType<typeof readOptions>, 'help'>>

/** Parses the command line. Throws an `Error` of one line for invalid options. */
export function readOptions(argv: readonly string[]) {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      cluster: { type: 'boolean', default: false },
      seconds: { type: 'string', default: '900' },
      window: { type: 'string', default: '26' },
      bursts: { type: 'string', default: '40' },
      faults: { type: 'string' },
      revocations: { type: 'string', default: '10' },
      seed: { type: 'string', default: '1' },
      results: { type: 'string' },
      history: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help' as const
  if (values.results === '') throw new Error('--results must name a directory')
  if (values.history === '') throw new Error('--history must name a file')
  const names = values.cluster ? CLUSTER_FAULT_NAMES : FAULT_NAMES
  return {
    cluster: values.cluster,
    seconds: number('--seconds', values.seconds, 1, 9_999),
    windowSeconds: number('--window', values.window, 1, 600),
    burstSeconds: number('--bursts', values.bursts, 0, 600),
    faults: someOf('--faults', values.faults ?? names.join(), names),
    revocations: number('--revocations', values.revocations, 0.1, 100),
    seed: seedOf(values.seed),
    results: values.results,
    history: values.history,
  }
}
