/** Command-line options of `npm run soak`. */
import { parseArgs } from 'node:util'
import { columns, number, oneOf, seedOf, someOf } from '../command-line.ts'
import { FAULT_NAMES } from './faults.ts'

const RUNTIMES = ['workerd', 'node'] as const
export type SoakRuntime = (typeof RUNTIMES)[number]

const MAX_MINUTES = 24 * 60
/** The number of callers is sufficient for this rate; above it their limits would be exhausted. */
export const MAX_RATE = 1_500

export const USAGE = `npm run soak [-- options]

Starts two gateways over one Redis as \`npm start\` does, with fault proxies before their
dependencies. Offers mixed traffic at 70 % of the peak with changing faults, checks every response,
every request at the origin and every audit event, and ends with a table of invariants, and with
tables of where the slowest 0.1 % and 1 % of the requests without a fault spent their time.

  --runtime <name>   workerd, or node with Redis over RESP (default: workerd)
  --minutes <n>      duration (default: 10)
  --rate <n>         requests a second, up to ${MAX_RATE} (default: 70 % of the measured peak)
  --peak <seconds>   duration of the measurement of the peak (default: 10)
  --callers <n>      callers at least, each of which both gateways know at the start (default: 0)
  --window <seconds> duration of one fault and the rest after it (default: 20)
  --faults <names>   only these faults, separated by commas:
                     ${columns(FAULT_NAMES)}
  --seed <n>         seed of faults and traffic (default: 1)
  --out <file>       JSON file (default: bench/results/<date>-soak.json or -soak-node.json)
  --help

Exit code 1: an invariant is broken, or a process did not start. 2: invalid options.`

export type SoakOptions = Readonly<Exclude<ReturnType<typeof readOptions>, 'help'>>

/** Parses the command line. Throws an `Error` of one line for invalid options. */
export function readOptions(argv: readonly string[]) {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      runtime: { type: 'string', default: 'workerd' },
      minutes: { type: 'string', default: '10' },
      rate: { type: 'string' },
      peak: { type: 'string', default: '10' },
      callers: { type: 'string', default: '0' },
      window: { type: 'string', default: '20' },
      faults: { type: 'string' },
      seed: { type: 'string', default: '1' },
      out: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help' as const
  return {
    runtime: oneOf('--runtime', values.runtime, RUNTIMES),
    minutes: number('--minutes', values.minutes, 0.1, MAX_MINUTES),
    rate: values.rate === undefined ? undefined : number('--rate', values.rate, 5, MAX_RATE),
    peakSeconds: number('--peak', values.peak, 1, 120),
    callers: number('--callers', values.callers, 0, 100_000),
    windowSeconds: number('--window', values.window, 2, 600),
    faults: someOf('--faults', values.faults ?? FAULT_NAMES.join(), FAULT_NAMES),
    seed: seedOf(values.seed),
    out: values.out,
  }
}
