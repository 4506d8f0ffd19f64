/** Runs the sessions of many users at once, and measures each step. */
import { join } from 'node:path'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import { percentile, rounded, sumOf } from '../measure/statistics.ts'
import { withUsage } from '../measure/usage.ts'
import { type Child, startChild } from '../processes/child.ts'
import { totalMicros } from '../processes/proc.ts'
import type { Fleet } from './fleet.ts'
import { type Question, type Setup, STEPS, type Step, type StepOutcome } from './protocol.ts'

/** One step of one run. Latencies start when a request was due. */
export interface StepFigures extends ReturnType<typeof figuresOf> {
  /** CPU time of all gateways, and HTTP calls to Redis, per request. */
  readonly cpuMicros: number
  readonly redisCalls: number
}

export interface Run {
  readonly users: number
  readonly processes: number
  readonly pace: 'closed' | 'offered'
  /** Users who were logged in at the same time. */
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
  /** Concurrent requests of a closed load. */
  readonly width: number
  /** Offered requests per second of each step; undefined: a closed load. */
  readonly rates: Readonly<Record<Step, number>> | undefined
}

let runs = 0

/** Runs all steps. Throws an `Error` of one line for a wrong response or a wrong count. */
export async function runSessions(options: RunOptions): Promise<Run> {
  const { fleet, senders, users, processes, verifies, connections, width, rates } = options
  const gateways = fleet.gateways.slice(0, processes)
  const pids = gateways.map(({ pid }) => pid)
  const setup: Omit<Setup, 'first' | 'users'> = {
    ...fleet.cast,
    urls: gateways.map(({ url }) => url),
    prefix: `run${++runs}`,
    verifies,
    connections,
    width,
  }
  await senders.prepare(setup, users)
  const steps: StepFigures[] = []
  const latencies: number[][] = []
  let sessions = 0
  for (const step of STEPS) {
    const { result: outcome, usage } = await withUsage(pids, fleet.backends, () =>
      senders.take(step, rates?.[step]),
    )
    const { requests: atOrigin, calls } = usage.counts
    refuseWrong(step, outcome, atOrigin, rates === undefined)
    if (step === 'login') sessions = outcome.sessions
    const figures = figuresOf(step, outcome)
    const requests = figures.answers + figures.failed
    steps.push({
      ...figures,
      cpuMicros: rounded(sumOf(usage.processes, totalMicros) / requests, 0),
      redisCalls: rounded(calls / requests, 2),
    })
    latencies.push([...outcome.latenciesMs])
  }
  const pace = rates === undefined ? 'closed' : 'offered'
  return { users, processes, pace, sessions, steps, all: allOf(steps, latencies.flat()) }
}

function figuresOf(
  step: Step | 'all',
  { latenciesMs, failed, seconds }: Pick<StepOutcome, 'latenciesMs' | 'failed' | 'seconds'>,
) {
  const of = (quantile: number) => percentile(latenciesMs, quantile) ?? 0
  const answers = latenciesMs.length
  return {
    step,
    answers,
    failed,
    seconds: rounded(seconds, 2),
    perSecond: rounded(answers / seconds, 0),
    p50Ms: of(0.5),
    p95Ms: of(0.95),
    p99Ms: of(0.99),
  }
}

function allOf(steps: readonly StepFigures[], latenciesMs: readonly number[]): StepFigures {
  const sum = (of: (step: StepFigures) => number) => sumOf(steps, of)
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

/** Throws an `Error` of one line for a wrong response or a wrong count at the origin. */
export function refuseWrong(
  step: Step,
  { wrong, examples, latenciesMs, failed }: StepOutcome,
  atOrigin: number,
  isClosed = false,
): void {
  const answers = latenciesMs.length
  if (wrong > 0)
    throw new Error(
      `${step}: ${wrong} wrong responses, for example ${examples.slice(0, 3).join(', ')}`,
    )
  if (answers === 0) throw new Error(`${step}: no correct answer`)
  if (isClosed && failed > answers)
    throw new Error(`${step}: ${failed} of ${answers + failed} failed`)
  const most = step === 'verify' ? answers + failed : 0
  const least = step === 'verify' ? answers : 0
  if (atOrigin < least || atOrigin > most)
    throw new Error(`${step}: ${atOrigin} requests at the origin for ${answers} responses`)
}

/** The offered share of the peak. Above it, latencies are mostly those of a queue. */
export const OFFERED_SHARE = 0.6

/** Returns the offered rate of each step: a share of what `peak` reached. */
export function ratesOf({ steps }: Pick<Run, 'steps'>): Readonly<Record<Step, number>> {
  const rateOf = (step: Step) =>
    OFFERED_SHARE * (steps.find((figures) => figures.step === step)?.perSecond ?? 1)
  return {
    login: rateOf('login'),
    verify: rateOf('verify'),
    logout: rateOf('logout'),
    again: rateOf('again'),
  }
}

/** One sender reaches its limit before four gateways do. */
const PROCESSES = 2

export type Senders = Awaited<ReturnType<typeof startSenders>>

export async function startSenders(shutdown: Pick<Shutdown, 'defer'>) {
  const children: Child<object>[] = []
  for (let index = 0; index < PROCESSES; index++) {
    const child = await startChild<object>(join(import.meta.dirname, 'sender.ts'))
    shutdown.defer(child.close)
    children.push(child)
  }
  const callAll = <Answer>(question: (index: number) => Question) =>
    Promise.all(children.map((child, index) => child.call<Answer>(question(index))))
  return {
    /** Distributes users and connections over the processes. */
    async prepare(setup: Omit<Setup, 'first' | 'users'>, users: number): Promise<void> {
      const share = Math.ceil(users / PROCESSES)
      const connections = Math.ceil(setup.connections / PROCESSES)
      const width = Math.ceil(setup.width / PROCESSES)
      await callAll((index) => ({
        kind: 'prepare',
        setup: {
          ...setup,
          connections,
          width,
          first: index * share,
          users: Math.min(share, users - index * share),
        },
      }))
    },
    /** Performs a step of all users, at `perSecond` in total. */
    async take(step: Step, perSecond: number | undefined): Promise<StepOutcome> {
      const share = perSecond === undefined ? undefined : perSecond / PROCESSES
      return together(await callAll(() => ({ kind: 'step', step, perSecond: share })))
    },
  }
}

export function together(outcomes: readonly StepOutcome[]): StepOutcome {
  const sum = (of: (outcome: StepOutcome) => number) => sumOf(outcomes, of)
  return {
    latenciesMs: outcomes.flatMap(({ latenciesMs }) => latenciesMs),
    failed: sum(({ failed }) => failed),
    wrong: sum(({ wrong }) => wrong),
    examples: outcomes.flatMap(({ examples }) => examples),
    seconds: Math.max(...outcomes.map(({ seconds }) => seconds)),
    sessions: sum(({ sessions }) => sessions),
  }
}
