/** A thread that reports when requests are due, independently of the load of the sending thread. */
import { parentPort, workerData } from 'node:worker_threads'
import { monotonicMs, type Pace } from './pacer.ts'

/** The interval of messages. Each message contains all due times since the last one. */
const TICK_MS = 0.5

const { ratePerSecond, seconds, spacing } = workerData as Pace
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
