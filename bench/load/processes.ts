/** Sends an open load from several processes, if one alone cannot send enough. */
import { join } from 'node:path'
import { createLatencies, sumOf } from '../measure/statistics.ts'
import { type Child, startChild } from '../processes/child.ts'
import type { Offered, OpenLoad } from './open.ts'

export type OfferedByProcess = Omit<Offered, 'latencies' | 'lateness'> & {
  readonly latencies: readonly number[]
  readonly lateness: readonly number[]
}

/** Starts `count` processes. The caller must defer `close`. */
export async function startLoadProcesses(count: number) {
  const children: Child<object>[] = []
  for (let index = 0; index < count; index++)
    children.push(await startChild(join(import.meta.dirname, 'process.ts')))
  return {
    /** Like `offer`, with the load divided over the processes. Answers cannot be functions. */
    async offer(load: OpenLoad): Promise<Offered> {
      // Waits for all, even if one failed: no process may be busy when the next load begins.
      const outcomes = await Promise.allSettled(
        children.map((child, index) =>
          child.call<OfferedByProcess>({
            ...load,
            ratePerSecond: load.ratePerSecond / count,
            ...(load.maxOutstanding !== undefined && {
              maxOutstanding: shareOf(load.maxOutstanding, index, count),
            }),
          }),
        ),
      )
      return together(
        outcomes.map((outcome) => {
          if (outcome.status === 'rejected') throw outcome.reason
          return outcome.value
        }),
      )
    },
    /** Ends the processes. Read their CPU before: ended processes cannot be read. */
    async close(): Promise<void> {
      await Promise.all(children.map((child) => child.close()))
    },
  }
}

function together(each: readonly OfferedByProcess[]): Offered {
  const [latencies, lateness] = [createLatencies(), createLatencies()]
  const shed: Record<string, number> = {}
  for (const one of each) {
    latencies.add(one.latencies)
    lateness.add(one.lateness)
    for (const [code, times] of Object.entries(one.shed)) shed[code] = (shed[code] ?? 0) + times
  }
  const sum = (key: 'offered' | 'sent' | 'givenUp' | 'right' | 'loadCores') =>
    sumOf(each, (one) => one[key])
  return {
    offered: sum('offered'),
    sent: sum('sent'),
    givenUp: sum('givenUp'),
    right: sum('right'),
    shed,
    latencies,
    lateness,
    loadCores: sum('loadCores'),
    seconds: Math.max(...each.map((one) => one.seconds)),
  }
}

/** Returns one of `count` integer parts of `total` that differ by at most 1. */
function shareOf(total: number, index: number, count: number): number {
  return Math.floor((total * (index + 1)) / count) - Math.floor((total * index) / count)
}
