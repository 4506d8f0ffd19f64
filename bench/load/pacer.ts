/** Schedules the requests of an open load. A separate thread runs this module as well. */
import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

export interface Pace {
  readonly ratePerSecond: number
  readonly seconds: number
  /** `even`: at equal distances; `poisson`: at random times. */
  readonly spacing: 'even' | 'poisson'
}

/** The interval of messages. Each message contains all due times since the last one. */
const TICK_MS = 0.5
const NAME = 'pacer'

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
  const thread = new Worker(import.meta.filename, { workerData: { name: NAME, schedule } })
  thread.on('message', onDue)
  const [code] = (await once(thread, 'exit')) as [number]
  if (code !== 0) throw new Error('the pacer of the load ended unexpectedly')
}

function keepTime({ ratePerSecond, seconds, spacing }: Pace): void {
  const startMs = monotonicMs()
  const untilMs = startMs + seconds * 1000
  const meanMs = 1000 / ratePerSecond
  const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  /** Computed from the index, so that rounding errors do not add up. */
  const evenly = (index: number) => startMs + index * meanMs
  const atRandom = (_: number, beforeMs: number) => beforeMs - Math.log(1 - Math.random()) * meanMs
  const momentOf = spacing === 'even' ? evenly : atRandom

  let index = 0
  let nextMs = startMs
  while (nextMs < untilMs) {
    // Nothing wakes it. The sleep is exact to about ten microseconds; timers are not.
    Atomics.wait(never, 0, 0, Math.max(nextMs - monotonicMs(), TICK_MS))
    const nowMs = monotonicMs()
    const due: number[] = []
    for (; nextMs <= nowMs && nextMs < untilMs; nextMs = momentOf(++index, nextMs)) due.push(nextMs)
    if (due.length > 0) parentPort?.postMessage(due)
  }
}

// Test runners also load modules in threads of their own.
if (!isMainThread && workerData?.name === NAME) keepTime(workerData.schedule)
