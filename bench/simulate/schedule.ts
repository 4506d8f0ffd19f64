/** A virtual clock, and the events that happen on it in the order of time. */

interface Event {
  readonly atMs: number
  /** Events of the same time happen in the order in which they were planned. */
  readonly order: number
  readonly run: () => void
}

/** Turns of the queue of promises that one event may need. More mean that work waits for real time. */
const MOST_TURNS = 10_000

export type Schedule = ReturnType<typeof createSchedule>

/**
 * Creates a schedule that begins at `startMs`. Work is asynchronous, as the gateway's code is, but
 * may wait only with `sleep`. Before the clock advances, all work has ended or sleeps.
 */
export function createSchedule(startMs: number) {
  const events: Event[] = []
  let nowMs = startMs
  let planned = 0
  let active = 0
  let sleeping = 0

  const isBefore = (one: Event, other: Event) =>
    one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)

  function swap(a: number, b: number): void {
    const [one, other] = [events[a], events[b]]
    if (one === undefined || other === undefined) return
    events[a] = other
    events[b] = one
  }

  /** Whether the event at place `a` of the heap must be above that at `b`. */
  function precedes(a: number, b: number): boolean {
    const [one, other] = [events[a], events[b]]
    return one !== undefined && other !== undefined && isBefore(one, other)
  }

  function at(atMs: number, run: () => void): void {
    events.push({ atMs: Math.max(atMs, nowMs), order: planned++, run })
    for (let place = events.length - 1; place > 0; ) {
      const parent = (place - 1) >> 1
      if (!precedes(place, parent)) return
      swap(place, parent)
      place = parent
    }
  }

  function next(): Event | undefined {
    swap(0, events.length - 1)
    const first = events.pop()
    for (let place = 0; ; ) {
      let least = place
      for (const child of [2 * place + 1, 2 * place + 2]) if (precedes(child, least)) least = child
      if (least === place) return first
      swap(place, least)
      place = least
    }
  }

  return {
    /** Milliseconds, with fractions. */
    now: () => nowMs,
    at,
    /** Waits in virtual time. Work that was passed to `start` may sleep once at a time. */
    sleep(ms: number): Promise<void> {
      sleeping += 1
      return new Promise((resolve) =>
        at(nowMs + ms, () => {
          sleeping -= 1
          resolve()
        }),
      )
    },
    /** Starts work. */
    start(work: () => Promise<void>): void {
      active += 1
      void work().finally(() => {
        active -= 1
      })
    },
    /** Runs all events before `endMs`. */
    async run(endMs: number): Promise<void> {
      while ((events[0]?.atMs ?? endMs) < endMs) {
        const event = next()
        if (event === undefined) return
        nowMs = event.atMs
        event.run()
        for (let turn = 0; active !== sleeping; turn++) {
          if (turn === MOST_TURNS)
            throw new Error('simulate: work waits for something else than time')
          await undefined
        }
      }
      nowMs = endMs
    },
  }
}
