/** Command-line options of `npm run bench:report`. */
import { parseArgs } from 'node:util'

export const USAGE = `npm run bench:report [-- options]

Generates docs/reports/benchmarks.md and the figures of docs/benchmarks.md and README.md from the
results files: the newest result of each scenario, soak and profile, and every comparison.

  --check        writes nothing; exit code 1 if one of them does not match the results
  --from <dir>   another folder of results; needs --out
  --out <dir>    writes only report.md and figures.md there
  --help

Exit code 2: invalid options, or an invalid results file.`

export type ReportOptions = Readonly<Exclude<ReturnType<typeof readOptions>, 'help'>>

/** Parses the command line. Throws an `Error` of one line for invalid options. */
export function readOptions(argv: readonly string[]) {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      from: { type: 'string' },
      out: { type: 'string' },
      check: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help' as const
  if (values.from === '' || values.out === '') throw new Error('--from and --out must name a path')
  if (values.from !== undefined && values.out === undefined)
    throw new Error(
      '--from needs --out: the files in the repository are generated from bench/results',
    )
  return { from: values.from, out: values.out, check: values.check ?? false }
}
