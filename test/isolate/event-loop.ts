/** A model of an isolate: one thread, turns that take time, and timers that fire between turns. */
import { vi } from 'vitest'

export interface EventLoop {
  now(): number
  /** Queues `task` behind all ready tasks. It takes `costMs`. */
  ready(task: () => void, costMs?: number): void
  /** Queues `task` when the isolate polls for events at `atMs` or later. */
  at(atMs: number, task: () => void, costMs?: number): void
  /** Runs until no task is ready or due. */
  run(): void
  /** Number of timers that have fired. */
  timersFired(): number
}

interface Event {
  readonly id: number
  readonly atMs: number
  readonly task: () => void
  readonly costMs: number
}

/**
 * Replaces the global timers and `Date.now` by those of a new event loop until
 * `vi.unstubAllGlobals()` and `vi.restoreAllMocks()`. Like workerd, it polls for due timers and
 * responses only when no task is ready.
 */
export function installEventLoop(timerCostMs = 0.02): EventLoop {
  let nowMs = 0
  let lastId = 0
  let fired = 0
  /** By the millisecond in which they are due, so that a thousand timers are found at once. */
  const events = new Map<number, Event[]>()
  const cancelled = new Set<number>()
  const queue: Pick<Event, 'task' | 'costMs'>[] = []
  let next = 0

  function at(atMs: number, task: () => void, costMs = 0): number {
    const id = ++lastId
    const slot = Math.floor(atMs)
    const slotEvents = events.get(slot) ?? []
    events.set(slot, slotEvents)
    slotEvents.push({ id, atMs, task, costMs })
    return id
  }
  /** Waits for the next due tasks and moves them to the queue. Reports whether any task is left. */
  function poll(): boolean {
    const slots = [...events.keys()].sort((a, b) => a - b)
    for (const slot of slots) {
      const pending = (events.get(slot) ?? []).filter(({ id }) => !cancelled.delete(id))
      pending.sort((a, b) => a.atMs - b.atMs || a.id - b.id)
      if (queue.length === next) nowMs = Math.max(nowMs, pending[0]?.atMs ?? 0)
      const due = pending.filter(({ atMs }) => atMs <= nowMs)
      queue.push(...due)
      if (due.length < pending.length) {
        events.set(slot, pending.slice(due.length))
        break
      }
      events.delete(slot)
    }
    return queue.length > next
  }

  vi.spyOn(Date, 'now').mockImplementation(() => nowMs)
  type Task = (...args: readonly unknown[]) => void
  vi.stubGlobal('setTimeout', (task: Task, ms: number, ...args: readonly unknown[]) => {
    const id: number = at(
      nowMs + ms,
      () => {
        if (cancelled.delete(id)) return
        fired += 1
        task(...args)
      },
      timerCostMs,
    )
    return id
  })
  vi.stubGlobal('clearTimeout', (id: number) => void cancelled.add(id))

  return {
    now: () => nowMs,
    ready(task, costMs = 0) {
      queue.push({ task, costMs })
    },
    at: (atMs, task, costMs) => void at(atMs, task, costMs),
    run() {
      while (next < queue.length || poll()) {
        const { task, costMs } = queue[next++] as Event
        nowMs += costMs
        task()
      }
    },
    timersFired: () => fired,
  }
}
