/** How many requests of this isolate are waiting for their answer. No I/O; time is an argument. */

const SLOT_MS = 4_000
const SLOTS = 8
/** Counted no longer than this, at least: a request may end without a word. */
export const FORGOTTEN_AFTER_MS = SLOT_MS * (SLOTS - 1)

/** No request was let in. */
export const FULL = -1

export interface Waiting {
  /** Counts a request in, unless `max` or more are: then {@link FULL}. */
  enter(max: number, nowMs: number): number
  /** Counts out the request that `enter` gave this number to. */
  leave(slot: number): void
  count(): number
}

/**
 * Makes the count. The platform may end a request and never say so, so requests are counted by the
 * time at which they came, and whoever came more than 28 to 32 s ago is forgotten: it has died, or it
 * waits for something slow and takes nobody's turn.
 */
export function createWaiting(): Waiting {
  const counts = new Int32Array(SLOTS)
  let latest = 0
  let total = 0

  /** Forgets the slots that time has gone through since. */
  function advance(slot: number): void {
    for (let passed = Math.max(latest, slot - SLOTS) + 1; passed <= slot; passed++) {
      total -= counts[passed % SLOTS] ?? 0
      counts[passed % SLOTS] = 0
    }
    latest = slot
  }

  function add(slot: number, difference: 1 | -1): void {
    counts[slot % SLOTS] = (counts[slot % SLOTS] ?? 0) + difference
    total += difference
  }

  return {
    enter(max, nowMs) {
      const slot = Math.floor(nowMs / SLOT_MS)
      if (slot > latest) advance(slot)
      if (total >= max) return FULL
      add(latest, 1)
      return latest
    },
    leave(slot) {
      if (slot > latest - SLOTS) add(slot, -1)
    },
    count: () => total,
  }
}
