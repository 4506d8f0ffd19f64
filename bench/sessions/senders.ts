/** The processes that send: each lives the sessions of some of the users. */
import { join } from 'node:path'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import { type Child, startChild } from '../soak/child.ts'
import type { Question, Setup, Step, StepOutcome } from './protocol.ts'

/** One alone is at its limit before four gateways are. */
const PROCESSES = 2

export interface Senders {
  /** Divides the users and the connections among the processes, which sign everybody's first token. */
  prepare(setup: Omit<Setup, 'first' | 'users'>, users: number): Promise<void>
  /** Lets all of them take a step; `perSecond` in all. */
  take(step: Step, perSecond: number | undefined): Promise<StepOutcome>
}

export async function startSenders(shutdown: Pick<Shutdown, 'defer'>): Promise<Senders> {
  const children: Child<object>[] = []
  for (let index = 0; index < PROCESSES; index++) {
    const child = await startChild<object>(join(import.meta.dirname, 'sender.ts'), {})
    shutdown.defer(child.close)
    children.push(child)
  }
  const askAll = <Answer>(question: (index: number) => Question) =>
    Promise.all(children.map((child, index) => child.ask<Answer>(question(index))))
  return {
    async prepare(setup, users) {
      const share = Math.ceil(users / PROCESSES)
      const connections = Math.ceil(setup.connections / PROCESSES)
      const width = Math.ceil(setup.width / PROCESSES)
      await askAll((index) => ({
        kind: 'prepare',
        setup: {
          ...{ ...setup, connections, width, first: index * share },
          users: Math.min(share, users - index * share),
        },
      }))
    },
    async take(step, perSecond) {
      const share = perSecond === undefined ? undefined : perSecond / PROCESSES
      return together(await askAll(() => ({ kind: 'step', step, perSecond: share })))
    },
  }
}

/** What several did at the same time, as if one had. */
export function together(outcomes: readonly StepOutcome[]): StepOutcome {
  const sum = (of: (outcome: StepOutcome) => number) =>
    outcomes.reduce((total, outcome) => total + of(outcome), 0)
  return {
    latenciesMs: outcomes.flatMap(({ latenciesMs }) => latenciesMs),
    failed: sum(({ failed }) => failed),
    wrong: sum(({ wrong }) => wrong),
    examples: outcomes.flatMap(({ examples }) => examples),
    seconds: Math.max(...outcomes.map(({ seconds }) => seconds)),
    sessions: sum(({ sessions }) => sessions),
  }
}
