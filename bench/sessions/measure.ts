/** Lets so many users live their sessions at once, and says what each step took. */
import { cpuTimesOf } from '../process-times.ts'
import { percentile } from '../soak/series.ts'
import { rounded } from '../statistics.ts'
import { untilQuiet } from '../usage.ts'
import type { Fleet } from './fleet.ts'
import { type Setup, STEPS, type Step, type StepOutcome } from './protocol.ts'
import type { Senders } from './senders.ts'

/** What one step of one run took. Latencies count from when a request was due. */
export interface StepFigures {
  readonly step: Step | 'all'
  /** Answers that were right. */
  readonly answers: number
  readonly failed: number
  readonly seconds: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  /** Of all gateways, for each request; and HTTP calls to Redis. */
  readonly cpuMicros: number
  readonly redisCalls: number
}

export interface Run {
  readonly users: number
  readonly processes: number
  /** Whether the load was offered at a rate, or went as fast as it was answered. */
  readonly pace: 'closed' | 'offered'
  /** Those who were logged in at once, all of them. */
  readonly sessions: number
  readonly steps: readonly StepFigures[]
  readonly all: StepFigures
}

export interface RunOptions {
  readonly fleet: Fleet
  readonly senders: Senders
  readonly users: number
  readonly processes: number
  readonly verifies: number
  readonly connections: number
  /** Requests under way at once, where no rates are given. */
  readonly width: number
  /** Requests a second to offer in each step; undefined: as many as are answered. */
  readonly rates: Readonly<Record<Step, number>> | undefined
}

let runs = 0

/** Throws an `Error` of one line for a wrong answer, or where the origin's count is another. */
export async function runSessions(options: RunOptions): Promise<Run> {
  const { fleet, senders, users, processes, verifies, connections, width, rates } = options
  const gateways = fleet.gateways.slice(0, processes)
  const setup: Omit<Setup, 'first' | 'users'> = {
    ...fleet.cast,
    ...{ urls: gateways.map(({ url }) => url), prefix: `run${++runs}` },
    ...{ verifies, connections, width },
  }
  await senders.prepare(setup, users)
  const steps: StepFigures[] = []
  const latencies: number[][] = []
  let sessions = 0
  for (const step of STEPS) {
    const before = await readingOf(fleet, gateways)
    const outcome = await senders.take(step, rates?.[step])
    await untilQuiet(fleet.backends)
    const after = await readingOf(fleet, gateways)
    refuseWrong(step, outcome, after.requests - before.requests, rates === undefined)
    if (step === 'login') sessions = outcome.sessions
    const figures = figuresOf(step, outcome)
    const requests = figures.answers + figures.failed
    steps.push({
      ...figures,
      cpuMicros: rounded((after.cpuMicros - before.cpuMicros) / requests, 0),
      redisCalls: rounded((after.calls - before.calls) / requests, 2),
    })
    latencies.push([...outcome.latenciesMs])
  }
  const pace = rates === undefined ? 'closed' : 'offered'
  return { users, processes, pace, sessions, steps, all: allOf(steps, latencies.flat()) }
}

function figuresOf(
  step: StepFigures['step'],
  { latenciesMs, failed, seconds }: Pick<StepOutcome, 'latenciesMs' | 'failed' | 'seconds'>,
): Omit<StepFigures, 'cpuMicros' | 'redisCalls'> {
  const of = (quantile: number) => percentile(latenciesMs, quantile) ?? 0
  const answers = latenciesMs.length
  return {
    ...{ step, answers, failed },
    seconds: rounded(seconds, 2),
    perSecond: rounded(answers / seconds, 0),
    ...{ p50Ms: of(0.5), p95Ms: of(0.95), p99Ms: of(0.99) },
  }
}

function allOf(steps: readonly StepFigures[], latenciesMs: readonly number[]): StepFigures {
  const sum = (of: (step: StepFigures) => number) =>
    steps.reduce((total, step) => total + of(step), 0)
  const requests = sum(({ answers, failed }) => answers + failed)
  const mean = (of: (step: StepFigures) => number) =>
    sum((step) => of(step) * (step.answers + step.failed)) / requests
  const [failed, seconds] = [sum((step) => step.failed), sum((step) => step.seconds)]
  return {
    ...figuresOf('all', { latenciesMs, failed, seconds }),
    cpuMicros: rounded(
      mean(({ cpuMicros }) => cpuMicros),
      0,
    ),
    redisCalls: rounded(
      mean(({ redisCalls }) => redisCalls),
      2,
    ),
  }
}

/** Nothing is measured of a gateway that is wrong once. */
export function refuseWrong(
  step: Step,
  { wrong, examples, latenciesMs, failed }: StepOutcome,
  atOrigin: number,
  isClosed = false,
): void {
  const answers = latenciesMs.length
  if (wrong > 0)
    throw new Error(`${step}: ${wrong} wrong answers, such as ${examples.slice(0, 3).join(', ')}`)
  if (answers === 0) throw new Error(`${step}: none was answered`)
  if (isClosed && failed > answers)
    throw new Error(`${step}: ${failed} of ${answers + failed} failed`)
  const most = step === 'verify' ? answers + failed : 0
  const least = step === 'verify' ? answers : 0
  if (atOrigin < least || atOrigin > most)
    throw new Error(`${step}: ${atOrigin} reached the origin, of ${answers} that were answered`)
}

async function readingOf(
  { backends }: Fleet,
  gateways: Fleet['gateways'],
): Promise<{ requests: number; calls: number; cpuMicros: number }> {
  const { requests, calls } = await backends.counts()
  const cpuMicros = gateways
    .map(({ pid }) => cpuTimesOf(pid))
    .reduce((sum, { userMicros, systemMicros }) => sum + userMicros + systemMicros, 0)
  return { requests, calls, cpuMicros }
}
