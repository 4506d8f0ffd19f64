/** `npm run bench:compare`: reports whether one revision of the gateway is slower than another. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ROOT } from '../dev/start/settings.ts'
import { createShutdown, type Shutdown } from '../dev/start/shutdown.ts'
import { startBackends } from './backends.ts'
import { measurePairs } from './compare/measure-pairs.ts'
import { type CompareOptions, readOptions, USAGE } from './compare/options.ts'
import { type Comparison, compared, comparisonText } from './compare/report.ts'
import { findRevision, type Revision } from './compare/revision.ts'
import { type SideName, startSide } from './compare/sides.ts'
import type { Verdict } from './compare/verdict.ts'
import { preflight } from './preflight.ts'
import { surroundings } from './surroundings.ts'
import { mintTokens } from './tokens.ts'

type Revisions = Readonly<Record<SideName, Revision>>
interface Asked {
  readonly options: CompareOptions
  readonly revisions: Revisions
}

const EXIT_CODES: Readonly<Record<Verdict, number>> = { ok: 0, regression: 1, noisy: 3 }

async function askedOrExit(argv: readonly string[]): Promise<Asked | 'help'> {
  try {
    const options = readOptions(argv)
    if (options === 'help') return options
    const [base, head] = await Promise.all(
      [options.base, options.head].map((name) => findRevision(name, process.cwd())),
    )
    return { options, revisions: { base, head } as Revisions }
  } catch (error) {
    const [problem] = (error as Error).message.split('\n')
    console.error(`compare: ${problem}\nSee: npm run bench:compare -- --help`)
    process.exit(2)
  }
}

async function compare({ options, revisions }: Asked, shutdown: Shutdown): Promise<Verdict> {
  if (process.platform !== 'linux') throw new Error('CPU times come from /proc: needs Linux')
  // Below the checkout, so that bundled files find their dependencies.
  const parent = join(ROOT, '.wrangler', 'compare')
  mkdirSync(parent, { recursive: true })
  const directory = mkdtempSync(join(parent, `${process.pid}-`))
  shutdown.defer(async () => rmSync(directory, { recursive: true, force: true }))

  progress('starting the origin and Redis')
  const backends = await startBackends()
  shutdown.defer(backends.close)
  const about = surroundings(argv, backends.redis.kind)
  const tokens = await mintTokens(join(directory, 'keys.env'))
  const { signingKeys } = tokens
  const start = (name: SideName) => {
    progress(`bundling ${name.toUpperCase()} ${revisions[name].name}`)
    return startSide(name, revisions[name], { backends, signingKeys, directory, shutdown })
  }
  const sides = { base: await start('base'), head: await start('head') }
  for (const { target, layer } of Object.values(sides)) await preflight(target, [layer], tokens)
  const measured = await measurePairs({ sides, backends, tokens, options, onProgress: progress })
  const comparison = compared(revisions, measured, options)
  console.log(`\n${comparisonText(comparison, options)}`)
  if (options.results !== undefined) save(options.results, about, { options, ...comparison })
  return comparison.verdict
}

/** Returns a file name that does not overwrite other results of the same day. */
function fileNameOf({ base, head, slowDownPercent }: CompareOptions): string {
  const slowed = slowDownPercent === 0 ? [] : ['slowed', slowDownPercent]
  return ['compare', base, head, ...slowed].join('-').replace(/[^\w-]+/g, '-')
}

function save(
  folder: string,
  about: ReturnType<typeof surroundings>,
  result: Comparison & { readonly options: CompareOptions },
): void {
  mkdirSync(folder, { recursive: true })
  const day = about.date.slice(0, 'yyyy-mm-dd'.length)
  const file = join(resolve(folder), `${day}-${fileNameOf(result.options)}.json`)
  const command = ['npm run bench:compare', '--', ...argv].join(' ')
  const { results: _, ...options } = result.options
  const written = { benchmark: 'compare', ...about, command, ...result, options }
  writeFileSync(file, `${JSON.stringify(written, null, 2)}\n`)
  progress(`written to ${file}`)
}

function progress(what: string): void {
  console.error(`compare: ${what}`)
}

const argv = process.argv.slice(2)
const asked = await askedOrExit(argv)
if (asked === 'help') {
  console.log(USAGE)
} else {
  const shutdown = createShutdown(1)
  try {
    await shutdown.exit(EXIT_CODES[await compare(asked, shutdown)])
  } catch (error) {
    if (!shutdown.signal.aborted) console.error(`compare: ${(error as Error).message}`)
    await shutdown.exit(1)
  }
}
