/** Sends a load from several processes, if one alone cannot send enough. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Driven, Load, LoadRequest } from './load.ts'
import type { Offered, OpenLoad } from './open-load.ts'
import { createLatencyHistogram, type LatencyCounts } from './statistics.ts'

/**
 * `expectBody` is the only supported check of bodies: functions cannot be sent to another process.
 */
type Sendable<Any extends Load | OpenLoad> = Omit<Any, 'requests'> & {
  readonly requests: readonly Omit<LoadRequest, 'isRight'>[]
}

/** A job for a process. */
export type LoadJob =
  | { readonly kind: 'drive'; readonly load: Sendable<Load> }
  | { readonly kind: 'offer'; readonly load: Sendable<OpenLoad> }

/** The result of a job. */
export type LoadAnswer =
  | { readonly error: string }
  | { readonly driven: Omit<Driven, 'latencies'>; readonly latencies: LatencyCounts }
  | {
      readonly offered: Omit<Offered, 'latencies' | 'lateness'>
      readonly latencies: LatencyCounts
      readonly lateness: LatencyCounts
    }

export interface LoadProcesses {
  /** Like `drive`. Distributes the connections over the processes. `loadCores` is the sum. */
  drive(load: Sendable<Load>): Promise<Driven>
  /** Like `offer`. Distributes the rate and the concurrent requests over the processes. */
  offer(load: Sendable<OpenLoad>): Promise<Offered>
  /** Ends the processes. Read their CPU before: `readingOf` cannot read ended processes. */
  close(): Promise<void>
}

/** Starts `count` processes. The caller must defer `close`. */
export function startLoadProcesses(count: number): LoadProcesses {
  const children = Array.from({ length: count }, () =>
    fork(join(import.meta.dirname, 'load-process.ts'), {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    }),
  )
  /**
   * Waits for all processes, even if one failed: no process may be busy when the next job begins.
   */
  async function askAll(jobOf: (index: number) => LoadJob): Promise<readonly LoadAnswer[]> {
    const asked = await Promise.allSettled(children.map((child, index) => ask(child, jobOf(index))))
    return asked.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason
      return outcome.value
    })
  }
  return {
    async drive(load) {
      const answers = await askAll((index) => ({
        kind: 'drive',
        load: { ...load, connections: shareOf(load.connections, index, count) },
      }))
      const latencies = createLatencyHistogram()
      const each = answers.map((answer) => {
        if (!('driven' in answer)) throw new Error('a process of the load has done something else')
        latencies.add(answer.latencies)
        return answer.driven
      })
      const seconds = Math.max(...each.map((driven) => driven.seconds))
      const loadCores = sumOf(each.map((driven) => driven.loadCores))
      return { requests: latencies.count, seconds, latencies, loadCores }
    },
    async offer(load) {
      const answers = await askAll((index) => ({
        kind: 'offer',
        load: {
          ...load,
          ratePerSecond: load.ratePerSecond / count,
          ...(load.maxOutstanding !== undefined && {
            maxOutstanding: shareOf(load.maxOutstanding, index, count),
          }),
        },
      }))
      return mergedOffers(answers)
    },
    async close() {
      await Promise.all(children.map(end))
    },
  }
}

function mergedOffers(answers: readonly LoadAnswer[]): Offered {
  const latencies = createLatencyHistogram()
  const lateness = createLatencyHistogram()
  const shed: Record<string, number> = {}
  const each = answers.map((answer) => {
    if (!('offered' in answer)) throw new Error('a process of the load has done something else')
    latencies.add(answer.latencies)
    lateness.add(answer.lateness)
    for (const [code, times] of Object.entries(answer.offered.shed))
      shed[code] = (shed[code] ?? 0) + times
    return answer.offered
  })
  const sum = (key: 'offered' | 'sent' | 'givenUp' | 'right' | 'loadCores') =>
    sumOf(each.map((one) => one[key]))
  return {
    ...{ offered: sum('offered'), sent: sum('sent'), givenUp: sum('givenUp'), right: sum('right') },
    ...{ shed, latencies, lateness, loadCores: sum('loadCores') },
    seconds: Math.max(...each.map((one) => one.seconds)),
  }
}

async function ask(child: ChildProcess, job: LoadJob): Promise<LoadAnswer> {
  const ended = new AbortController()
  const onExit = () => ended.abort()
  child.once('exit', onExit)
  try {
    child.send(job)
    const [answer] = (await once(child, 'message', { signal: ended.signal })) as [LoadAnswer]
    if ('error' in answer) throw new Error(answer.error)
    return answer
  } catch (error) {
    if (ended.signal.aborted) throw new Error('a process of the load has ended by itself')
    throw error
  } finally {
    child.off('exit', onExit)
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.disconnect()
  await exited
}

/** Returns one of `count` integer parts of `total` that differ by at most 1. */
function shareOf(total: number, index: number, count: number): number {
  return Math.floor((total * (index + 1)) / count) - Math.floor((total * index) / count)
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}
