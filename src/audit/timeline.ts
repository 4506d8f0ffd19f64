/** Start times of the stages of one request, in two parallel arrays to keep the cost low. */

export type Timeline = ReturnType<typeof createTimeline>

/** On Workers the clock advances only with I/O, so a stage without I/O takes 0. */
export function createTimeline(now: () => number) {
  const stages: string[] = []
  const enteredMs: number[] = []
  return {
    /**
     * Starts a stage, which ends the previous one. `isSameMoment`: nothing was awaited since the
     * previous stage started, so the clock is not read.
     */
    enter(stage: string, isSameMoment?: boolean): void {
      const lastMs = isSameMoment === true ? enteredMs.at(-1) : undefined
      stages.push(stage)
      enteredMs.push(lastMs ?? now())
    },
    /** For a refused request, the stage that refused. */
    current: () => stages.at(-1),
    /** Returns milliseconds by stage, added up for a repeated stage. The last one ends at `endMs`. */
    durations(endMs: number) {
      const durationsMs: Record<string, number> = {}
      for (let index = 0; index < stages.length; index++) {
        const stage = stages[index] ?? ''
        const tookMs = (enteredMs[index + 1] ?? endMs) - (enteredMs[index] ?? endMs)
        durationsMs[stage] = (durationsMs[stage] ?? 0) + tookMs
      }
      return durationsMs
    },
  }
}

const SECOND_MS = 1000
/** The current second, and its text, such as `2026-11-22T12:00:00.`, which many requests share. */
let second = Number.NaN
let secondText = ''

/** Returns the same text as `Date.prototype.toISOString`, for whole milliseconds. */
export function isoTime(nowMs: number): string {
  const now = Math.floor(nowMs / SECOND_MS)
  if (now !== second) {
    second = now
    secondText = new Date(now * SECOND_MS).toISOString().slice(0, -'000Z'.length)
  }
  return `${secondText}${String(nowMs - now * SECOND_MS).padStart(3, '0')}Z`
}
