/** Counts the requests of an isolate that are in progress. No I/O; time is an argument. */

const SLOT_MS = 4_000
const SLOTS = 8

export const FULL = -1

export type InFlightCount = ReturnType<typeof createInFlightCount>

/**
 * Creates the count. The platform may end a request without notice, so requests are counted by the
 * time of their arrival. A request that arrived more than 7 to 8 slots ago (28 to 32 s with the
 * default `slotMs`) no longer counts: it has ended, or it waits for a slow dependency.
 */
export function createInFlightCount(slotMs: number = SLOT_MS) {
  const counts = new Int32Array(SLOTS)
  let latest = 0
  let total = 0

  /** Clears the slots between the last request and now, or all slots. */
  function advance(slot: number): void {
    const from = slot > latest ? latest : 0
    for (let passed = Math.max(from, slot - SLOTS) + 1; passed <= slot; passed++) {
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
    /** Returns the request's slot, or {@link FULL} if `max` requests or more are in progress. */
    enter(max: number, nowMs: number): number {
      const slot = Math.floor(nowMs / slotMs)
      // Requests that ended without notice would count for as long as the clock was set back.
      if (slot > latest || slot < latest - SLOTS) advance(slot)
      if (total >= max) return FULL
      add(latest, 1)
      return latest
    },
    leave(slot: number): void {
      if (slot > latest - SLOTS && slot <= latest) add(slot, -1)
    },
    count: () => total,
  }
}
