/** Runs scenarios one after another and collects their results. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Shutdown } from '../dev/start/shutdown.ts'
import { isStarvation } from './measure/starvation.ts'
import { rounded, sumOf } from './measure/statistics.ts'
import type { Detail, Options } from './options.ts'
import type { Effort, Runtime } from './runtimes.ts'
import type { Measured, Scenario, SuiteResult } from './scenario.ts'

/** A scenario that takes this many times its stated duration, plus a minute, is considered hung. */
const PATIENCE = 5
const PATIENCE_SECONDS = 60

export interface Job {
  readonly scenario: Scenario
  readonly runtime: Runtime
}

/** Returns the jobs in the order of the registry. Throws for an unknown id or no job. */
export function jobsOf(
  scenarios: readonly Scenario[],
  { only, runtime, effort }: Pick<Options, 'only' | 'runtime' | 'effort'>,
): readonly Job[] {
  const known = scenarios.map(({ id }) => id)
  for (const id of only ?? []) {
    if (!known.includes(id))
      throw new Error(`--only: unknown scenario "${id}"; known: ${known.join(', ')}`)
  }
  const jobs = scenarios
    .filter(({ id, seconds }) => only?.includes(id) ?? (effort === 'full' || seconds.quick > 0))
    .flatMap((scenario) =>
      runtimesOf(scenario, effort, runtime).map((each) => ({ scenario, runtime: each })),
    )
  if (jobs.length === 0) throw new Error(`no selected scenario runs under ${runtime}`)
  return jobs
}

function runtimesOf(
  { runtimes }: Scenario,
  effort: Effort,
  wanted: Runtime | undefined,
): readonly Runtime[] {
  if (wanted !== undefined) return runtimes.filter((runtime) => runtime === wanted)
  return effort === 'quick' ? runtimes.slice(0, 1) : runtimes
}

export interface SuiteOptions {
  readonly jobs: readonly Job[]
  readonly effort: Effort
  readonly detail: Detail
  /** Directory for generated files. Each job gets its own folder in it. */
  readonly directory: string
  readonly shutdown: Shutdown
  readonly onProgress: (what: string) => void
  /** Called after each job with all results so far, and the new ones. */
  readonly onResult: (
    result: Pick<SuiteResult, 'measured' | 'failed'>,
    latest: Measured | undefined,
  ) => void
}

/** Runs all jobs. A failed job does not stop the others. Stops on a signal. */
export async function runSuite(
  options: SuiteOptions,
): Promise<Pick<SuiteResult, 'measured' | 'failed'>> {
  const { jobs, shutdown, onProgress, onResult } = options
  const measured: Measured[] = []
  const failed: { scenario: string; runtime: Runtime; why: string }[] = []
  const startedMs = Date.now()
  for (const [index, job] of jobs.entries()) {
    if (shutdown.signal.aborted) break
    const left = secondsLeft(options, index, (Date.now() - startedMs) / 1000)
    const { scenario, runtime } = job
    const place = `[${index + 1}/${jobs.length}] ${scenario.id}, ${runtime}`
    onProgress(`${place}: ${scenario.title}; about ${timeOf(left)} left in all`)
    let latest: Measured | undefined
    try {
      latest = await runPatiently(options, job, (what) => onProgress(`${place}: ${what}`))
      measured.push(latest)
    } catch (error) {
      if (shutdown.signal.aborted) break
      const [why = 'failed'] = messageOf(error).split('\n')
      failed.push({ scenario: scenario.id, runtime, why })
      onProgress(`${place}: FAILED: ${why}`)
    }
    onResult({ measured, failed }, latest)
  }
  return { measured, failed }
}

/** Runs a job again if the machine was overloaded. The result records it. */
async function runPatiently(
  options: SuiteOptions,
  job: Job,
  onProgress: (what: string) => void,
): Promise<Measured> {
  try {
    return await runJob(options, job, onProgress)
  } catch (error) {
    const message = messageOf(error)
    if (!isStarvation(message) || options.shutdown.signal.aborted) throw error
    onProgress(`the machine is too busy (${message}); repeating`)
    const measured = await runJob(options, job, onProgress)
    const note = `The first attempt failed on a busy machine: ${message}.`
    return { ...measured, notes: [...(measured.notes ?? []), note] }
  }
}

async function runJob(
  { effort, detail, directory: parent, shutdown }: SuiteOptions,
  { scenario, runtime }: Job,
  onProgress: (what: string) => void,
): Promise<Measured> {
  const directory = join(parent, `${scenario.id}-${runtime}`)
  mkdirSync(directory, { recursive: true })
  const startedMs = Date.now()
  const closers: (() => Promise<void>)[] = []
  async function closeAll(): Promise<void> {
    for (let close = closers.pop(); close !== undefined; close = closers.pop()) await close()
  }
  // For an interrupted run. After a complete run nothing is left to close.
  shutdown.defer(closeAll)
  const own: Shutdown = { ...shutdown, defer: (close) => void closers.push(close) }
  try {
    const result = await within(
      scenario.seconds[effort] * PATIENCE + PATIENCE_SECONDS,
      scenario.run({ effort, runtime, directory, shutdown: own, onProgress, detail }),
    )
    const tookSeconds = rounded((Date.now() - startedMs) / 1000, 1)
    return { scenario: scenario.id, title: scenario.title, runtime, tookSeconds, ...result }
  } finally {
    await closeAll()
  }
}

async function within<Result>(seconds: number, work: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out after ${seconds} s`)), seconds * 1000)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the remaining duration, corrected by the duration of the completed jobs. */
function secondsLeft({ jobs, effort }: SuiteOptions, done: number, tookSeconds: number): number {
  const secondsOf = (some: readonly Job[]) =>
    sumOf(some, ({ scenario }) => scenario.seconds[effort])
  const expected = secondsOf(jobs.slice(0, done))
  return secondsOf(jobs.slice(done)) * (expected > 0 ? tookSeconds / expected : 1)
}

function timeOf(seconds: number): string {
  return seconds < 100 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
