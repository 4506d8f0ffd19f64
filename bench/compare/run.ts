/** `npm run bench:compare`: reports whether one revision of the gateway is slower than another. */
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ROOT } from '../../dev/start/settings.ts'
import { checkGateway } from '../load/refusals.ts'
import { commandLine, type RunContext, runProgram } from '../main.ts'
import { mintTokens } from '../stack/credentials.ts'
import { startGround } from '../stack/gateway.ts'
import { surroundings } from '../surroundings.ts'
import { type MeasuredPairs, measurePairs } from './measure-pairs.ts'
import { type CompareOptions, readOptions, USAGE } from './options.ts'
import { findRevision, prepareSide, type Revision, type SideName } from './sides.ts'
import {
  type Comparison,
  compared,
  comparisonMarkdown,
  comparisonText,
  type Verdict,
} from './verdict.ts'

const COMMAND = 'npm run bench:compare'

interface Parsed {
  readonly options: CompareOptions
  readonly revisions: Readonly<Record<SideName, Revision>>
}

const EXIT_CODES: Readonly<Record<Verdict, number>> = { ok: 0, regression: 1, noisy: 3 }

await runProgram<Parsed>({
  name: 'compare',
  command: COMMAND,
  usage: USAGE,
  async readOptions(argv) {
    const options = readOptions(argv)
    if (options === 'help') return options
    const base = await findRevision(options.base, process.cwd())
    const head = await findRevision(options.head, process.cwd())
    return { options, revisions: { base, head } }
  },
  run: async (parsed, context) => EXIT_CODES[await compare(parsed, context)],
})

async function compare(
  { options, revisions }: Parsed,
  { argv, shutdown, progress }: RunContext,
): Promise<Verdict> {
  if (process.platform !== 'linux') throw new Error('CPU times come from /proc: needs Linux')
  // Below the checkout, so that bundled files find their dependencies.
  const parent = join(ROOT, '.wrangler', 'compare')
  mkdirSync(parent, { recursive: true })
  const directory = mkdtempSync(join(parent, `${process.pid}-`))
  shutdown.defer(async () => rmSync(directory, { recursive: true, force: true }))

  progress('starting the origin and Redis')
  const ground = await startGround({ shutdown })
  const { backends } = ground
  const about = surroundings(argv, backends.redis.kind)
  const tokens = await mintTokens(ground)
  const prepare = (name: SideName) => {
    progress(`starting ${name.toUpperCase()} ${revisions[name].name}`)
    return prepareSide(name, revisions[name], { ...ground, directory, shutdown, options })
  }
  const starts = { base: await prepare('base'), head: await prepare('head') }
  const measured: MeasuredPairs[] = []
  while (measured.length < options.starts) {
    progress(`start ${measured.length + 1} of ${options.starts}`)
    const early = measured.length % 2 === 1 ? await starts.head() : undefined
    const sides = { base: await starts.base(), head: early ?? (await starts.head()) }
    for (const { title, url } of Object.values(sides)) await checkGateway(title, url, tokens)
    measured.push(await measurePairs({ sides, backends, tokens, options, onProgress: progress }))
    for (const side of Object.values(sides)) await side.close()
  }
  const comparison = compared(revisions, measured, options)
  console.log(`\n${comparisonText(comparison, options)}`)
  if (options.markdown !== undefined)
    appendFileSync(options.markdown, `${comparisonMarkdown(comparison, options)}\n\n`)
  if (options.results !== undefined) {
    const { results: _, markdown: __, ...others } = options
    const command = commandLine(COMMAND, argv)
    const written = { benchmark: 'compare', ...about, command, ...comparison, options: others }
    progress(`written to ${save(options.results, options, written)}`)
  }
  return comparison.verdict
}

/** Writes a file that does not overwrite other results of the same day. Returns its name. */
function save(
  folder: string,
  { base, head, slowDownPercent, runtime, durable }: CompareOptions,
  result: Comparison & { readonly date: string },
): string {
  mkdirSync(folder, { recursive: true })
  const day = result.date.slice(0, 'yyyy-mm-dd'.length)
  const slowed = slowDownPercent === 0 ? [] : ['slowed', slowDownPercent]
  const kind = runtime === 'node' ? [runtime, ...(durable ? ['durable'] : [])] : []
  const name = ['compare', ...kind, base, head, ...slowed].join('-').replace(/[^\w-]+/g, '-')
  const file = join(resolve(folder), `${day}-${name}.json`)
  writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`)
  return file
}
