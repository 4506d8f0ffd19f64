/** Command-line options of `npm run bench:report`. */
import { parseArgs } from 'node:util'

/** Options with unresolved paths. */
export interface ReportOptions {
  /** A folder of results, or one file. Undefined: `bench/results`. */
  readonly from: string | undefined
  /** Output folder. Undefined: each output has its own place in the repository. */
  readonly out: string | undefined
  /** Writes nothing and reports differences. */
  readonly check: boolean
}

export const USAGE = `npm run bench:report [-- options]

Makes bench/results/report.html, docs/benchmarks.md and the figures of README.md out of the newest
files of results: a full run of the suite (or a quick one, where there is no full one), the soak,
the profile, and every comparison.

  --check        writes nothing; exit code 1 if one of them is not what the results give
  --from <path>  other results: a folder, or one file; needs --out
  --out <dir>    report.html, benchmarks.md and figures.md go there, and nothing else is touched
  --help

Exit code 2: options that make no report, or a file that is not one of results.`

/** Parses the command line. Throws an `Error` of one line for invalid options. */
export function readOptions(argv: readonly string[]): ReportOptions | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      from: { type: 'string' },
      out: { type: 'string' },
      check: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help'
  if (values.from === '' || values.out === '') throw new Error('--from and --out name a path')
  if (values.from !== undefined && values.out === undefined)
    throw new Error('--from needs --out: what is in the repository is made of bench/results')
  return { from: values.from, out: values.out, check: values.check ?? false }
}
