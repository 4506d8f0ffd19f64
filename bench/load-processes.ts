/** Loads from several processes, for what one alone cannot send. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Driven, Load, LoadRequest } from './load.ts'
import type { Offered, OpenLoad } from './open-load.ts'
import { createLatencyHistogram, type LatencyCounts } from './statistics.ts'

/** Only a body that is the same for all can be looked for: functions stay in their process. */
type Sendable<Any extends Load | OpenLoad> = Omit<Any, 'requests'> & {
  readonly requests: readonly Omit<LoadRequest, 'isRight'>[]
}

/** What a process is asked. */
export type LoadJob =
  | { readonly kind: 'drive'; readonly load: Sendable<Load> }
  | { readonly kind: 'offer'; readonly load: Sendable<OpenLoad> }

/** What it answers. */
export type LoadAnswer =
  | { readonly error: string }
  | { readonly driven: Omit<Driven, 'latencies'>; readonly latencies: LatencyCounts }
  | {
      readonly offered: Omit<Offered, 'latencies' | 'lateness'>
      readonly latencies: LatencyCounts
      readonly lateness: LatencyCounts
    }

export interface LoadProcesses {
  /** As `drive`; connections are dealt out to the processes. `loadCores` is of all together. */
  drive(load: Sendable<Load>): Promise<Driven>
  /** As `offer`; the rate and the requests under way are dealt out to the processes. */
  offer(load: Sendable<OpenLoad>): Promise<Offered>
  /** Ends them. Their CPU is lost to `readingOf` then, so read before. */
  close(): Promise<void>
}

/** Starts so many. Whoever calls defers `close`. */
export function startLoadProcesses(count: number): LoadProcesses {
  const children = Array.from({ length: count }, () =>
    fork(join(import.meta.dirname, 'load-process.ts'), {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    }),
  )
  /** Waits for all of them, also where one has failed: the next job finds none at work. */
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

/** Whole parts that differ by one at most. */
function shareOf(total: number, index: number, count: number): number {
  return Math.floor((total * (index + 1)) / count) - Math.floor((total * index) / count)
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}
