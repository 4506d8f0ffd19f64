/** When the requests of an open load are due. */
import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'

export interface Pace {
  readonly ratePerSecond: number
  readonly seconds: number
  /** `even`: one as far from the next as any other; `poisson`: at random moments. */
  readonly spacing: 'even' | 'poisson'
}

/** Milliseconds on a clock that all threads and processes of this machine share. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1_000_000
}

/**
 * Calls `onDue` with the moments that have come since it was called last, on the clock of {@link monotonicMs}, and resolves
 * when all have. A thread of its own keeps the time: it is not late because this one is.
 */
export async function pace(schedule: Pace, onDue: (due: readonly number[]) => void): Promise<void> {
  const thread = new Worker(join(import.meta.dirname, 'pacer-thread.ts'), { workerData: schedule })
  thread.on('message', onDue)
  const [code] = (await once(thread, 'exit')) as [number]
  if (code !== 0) throw new Error('the pacer of the load has ended by itself')
}
