/** `npm run bench`: measures the gateway on this machine. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { startRedis } from '../dev/redis.ts'
import { ROOT } from '../dev/start/settings.ts'
import { createShutdown, type Shutdown } from '../dev/start/shutdown.ts'
import { startBackends } from './backends.ts'
import { type Options, readOptions, USAGE } from './options.ts'
import { profileGateway } from './profile.ts'
import { listOf, measuredText } from './report.ts'
import type { SuiteResult } from './scenario.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { type Job, jobsOf, runSuite } from './suite.ts'
import { surroundings } from './surroundings.ts'
import { profileCase } from './token-costs/profile-case.ts'
import { mintTokens } from './tokens.ts'

interface Asked {
  readonly options: Options
  readonly jobs: readonly Job[]
}

function askedOrExit(argv: readonly string[]): Asked | 'help' {
  try {
    const options = readOptions(argv)
    if (options === 'help') return 'help'
    const isProfileAlone = options.profile && options.only === undefined
    return { options, jobs: isProfileAlone ? [] : jobsOf(SCENARIOS, options) }
  } catch (error) {
    const [problem] = (error as Error).message.split('\n')
    console.error(`bench: ${problem}\nSee: npm run bench -- --help`)
    process.exit(2)
  }
}

/** Runs the benchmark. Returns the exit code. */
async function bench({ options, jobs }: Asked, shutdown: Shutdown): Promise<number> {
  if (process.platform !== 'linux') throw new Error('CPU times come from /proc: needs Linux')
  const parent = join(ROOT, '.wrangler')
  mkdirSync(parent, { recursive: true })
  const directory = mkdtempSync(join(parent, 'bench-'))
  shutdown.defer(async () => rmSync(directory, { recursive: true, force: true }))

  const about = surroundings(process.argv.slice(2), await kindOfRedis())
  if (options.profile) await profile(options, { about, directory, shutdown })
  if (jobs.length === 0) return 0

  const { effort } = options
  const file = fileOf(options, about.date, nameOf(options))
  const { failed } = await runSuite({
    ...{ jobs, effort, directory, shutdown },
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

async function profile(
  options: Options,
  run: {
    readonly about: ReturnType<typeof surroundings>
    readonly directory: string
    readonly shutdown: Shutdown
  },
): Promise<void> {
  const { about, directory, shutdown } = run
  progress('profile: starting the origin and Redis')
  const backends = await startBackends()
  shutdown.defer(backends.close)
  const common = { options, backends, directory, shutdown, onProgress: progress }
  const { name, result, cpuProfile } =
    options.case === undefined
      ? await profileGateway({ ...common, tokens: await mintTokens(join(directory, 'keys.env')) })
      : await profileCase(common, options.case)
  await backends.close()
  const file = fileOf(options, about.date, name)
  write(file, { benchmark: name, ...about, ...result })
  writeFileSync(file.replace(/json$/, 'cpuprofile'), JSON.stringify(cpuProfile))
  progress(`wrote ${file} and its .cpuprofile`)
}

/** Returns the kind of Redis for the scenarios. Each starts its own. */
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

function progress(what: string): void {
  console.error(`bench: ${what}`)
}

const asked = askedOrExit(process.argv.slice(2))
if (asked === 'help') {
  console.log(USAGE)
} else if (asked.options.list) {
  console.log(listOf(new Set(asked.jobs.map(({ scenario }) => scenario))))
} else {
  const shutdown = createShutdown(1)
  try {
    await shutdown.exit(await bench(asked, shutdown))
  } catch (error) {
    if (!shutdown.signal.aborted) console.error(`bench: ${(error as Error).message}`)
    await shutdown.exit(1)
  }
}
