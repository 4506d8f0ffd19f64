/** `npm run bench`: measures the gateway on this machine. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { startRedis } from '../dev/redis.ts'
import { ROOT } from '../dev/start/settings.ts'
import { type RunContext, runProgram } from './main.ts'
import { type Options, readOptions, USAGE } from './options.ts'
import { profile } from './profile/profile.ts'
import type { SuiteResult } from './scenario.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { type Job, jobsOf, runSuite } from './suite.ts'
import { surroundings } from './surroundings.ts'
import { listOf, measuredText } from './text.ts'

interface Parsed {
  readonly options: Options
  readonly jobs: readonly Job[]
}

await runProgram<Parsed>({
  name: 'bench',
  command: 'npm run bench',
  usage: USAGE,
  readOptions(argv) {
    const options = readOptions(argv)
    if (options === 'help') return options
    const isProfileAlone = options.profile && options.only === undefined
    return { options, jobs: isProfileAlone ? [] : jobsOf(SCENARIOS, options) }
  },
  run: bench,
})

async function bench({ options, jobs }: Parsed, context: RunContext): Promise<number> {
  if (options.list) {
    console.log(listOf(new Set(jobs.map(({ scenario }) => scenario))))
    return 0
  }
  const { argv, shutdown, progress } = context
  if (process.platform !== 'linux') throw new Error('CPU times come from /proc: needs Linux')
  const parent = join(ROOT, '.wrangler')
  mkdirSync(parent, { recursive: true })
  const directory = mkdtempSync(join(parent, 'bench-'))
  shutdown.defer(async () => rmSync(directory, { recursive: true, force: true }))
  if (options.profile) await saveProfile(options, context, directory)
  if (jobs.length === 0) return 0

  const { effort } = options
  const about = surroundings(argv, await kindOfRedis())
  const file = fileOf(options, about.date, nameOf(options))
  const { failed } = await runSuite({
    jobs,
    effort,
    directory,
    shutdown,
    detail: options,
    onProgress: progress,
    onResult(soFar, latest) {
      write(file, { benchmark: 'suite', effort, ...about, ...soFar } satisfies SuiteResult)
      if (latest !== undefined) console.log(measuredText(latest))
    },
  })
  progress(`written to ${file}`)
  for (const { scenario, runtime, why } of failed) progress(`${scenario}, ${runtime}: ${why}`)
  return failed.length === 0 ? 0 : 1
}

async function saveProfile(
  options: Options,
  { argv, shutdown, progress }: RunContext,
  directory: string,
): Promise<void> {
  const { runtime = 'node' } = options
  const context = { options, runtime, directory, shutdown, onProgress: progress }
  const { name, redis, result, cpuProfile } = await profile(context)
  const about = surroundings(argv, redis)
  const file = fileOf(options, about.date, name)
  write(file, { benchmark: name, ...about, ...result })
  writeFileSync(file.replace(/json$/, 'cpuprofile'), JSON.stringify(cpuProfile))
  progress(`written to ${file} and its .cpuprofile`)
}

async function kindOfRedis(): Promise<string> {
  const redis = await startRedis()
  await redis.close()
  return redis.kind
}

/** Returns the name of the results. Only a run of all scenarios is named after the effort. */
function nameOf({ only, runtime, effort }: Options): string {
  const parts = only === undefined ? effort : only.join('+')
  return runtime === undefined ? parts : `${parts}-${runtime}`
}

function fileOf({ results }: Options, date: string, name: string): string {
  const folder = resolve(results ?? join(import.meta.dirname, 'results'))
  return join(folder, `${date.slice(0, 'yyyy-mm-dd'.length)}-${name}.json`)
}

/** Writes a file atomically, because a run may be interrupted at any time. */
function write(file: string, result: object): void {
  mkdirSync(resolve(file, '..'), { recursive: true })
  const partial = `${file}.${process.pid}`
  writeFileSync(partial, `${JSON.stringify(result, null, 2)}\n`)
  renameSync(partial, file)
}
