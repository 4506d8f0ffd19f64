/** Schedules the requests of an open load. */
import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'

export interface Pace {
  readonly ratePerSecond: number
  readonly seconds: number
  /** `even`: at equal distances; `poisson`: at random times. */
  readonly spacing: 'even' | 'poisson'
}

/** Returns milliseconds of a clock that all threads and processes of this machine share. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1_000_000
}

/**
 * Calls `onDue` with the due times since its last call, on the clock of {@link monotonicMs}.
 * Resolves after the last one. A separate thread keeps the time, so it is not late if this thread
 * is busy.
 */
export async function pace(schedule: Pace, onDue: (due: readonly number[]) => void): Promise<void> {
  const thread = new Worker(join(import.meta.dirname, 'pacer-thread.ts'), { workerData: schedule })
  thread.on('message', onDue)
  const [code] = (await once(thread, 'exit')) as [number]
  if (code !== 0) throw new Error('the pacer of the load has ended by itself')
}
