/** When each stage of one request began: two parallel arrays, cheap enough for every request. */

export interface Timeline {
  /**
   * Marks the beginning of a stage, and with it the end of the one before. With `isSameMoment` the
   * clock is not read: nothing has been awaited since the last stage began.
   */
  enter(stage: string, isSameMoment?: boolean): void
  /** The stage that was entered last: of a refused request, the one that refused it. */
  current(): string | undefined
  /** Milliseconds by stage, the last one ending at `endMs`. A stage entered twice is summed. */
  durations(endMs: number): Record<string, number>
}

/**
 * A timeline on the given clock (milliseconds). On Workers the clock stands still between I/O, so
 * a stage that only computes takes 0.
 */
export function createTimeline(now: () => number): Timeline {
  const stages: string[] = []
  const enteredMs: number[] = []
  return {
    enter(stage, isSameMoment) {
      const lastMs = isSameMoment === true ? enteredMs.at(-1) : undefined
      stages.push(stage)
      enteredMs.push(lastMs ?? now())
    },
    current: () => stages.at(-1),
    durations(endMs) {
      const durationsMs: Record<string, number> = {}
      for (const [index, stage] of stages.entries()) {
        const tookMs = (enteredMs[index + 1] ?? endMs) - (enteredMs[index] ?? endMs)
        durationsMs[stage] = (durationsMs[stage] ?? 0) + tookMs
      }
      return durationsMs
    },
  }
}
