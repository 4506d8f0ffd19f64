/** Records when this process was late or collected garbage. */
import { PerformanceObserver, performance } from 'node:perf_hooks'

/** Times in milliseconds, the start since the epoch. `cpuMs` is CPU time of the main thread during a pause. */
export type Pause = readonly [
  kind: 'late' | 'collection',
  startMs: number,
  lengthMs: number,
  cpuMs: number,
]

const STEP_MS = 10
const MICROS_PER_MS = 1_000

/** Returns a function that returns the pauses since its last call. */
export function recordPauses(): () => readonly Pause[] {
  let pauses: Pause[] = []
  let dueMs = Date.now() + STEP_MS
  let cpu = process.threadCpuUsage()
  setInterval(() => {
    const lateMs = Date.now() - dueMs
    const { user, system } = process.threadCpuUsage(cpu)
    if (lateMs >= STEP_MS) pauses.push(['late', dueMs, lateMs, (user + system) / MICROS_PER_MS])
    dueMs += lateMs + STEP_MS
    cpu = process.threadCpuUsage()
  }, STEP_MS).unref()
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries())
      pauses.push(['collection', performance.timeOrigin + startTime, duration, duration])
  }).observe({ entryTypes: ['gc'] })
  return () => {
    const recorded = pauses
    pauses = []
    return recorded
  }
}
