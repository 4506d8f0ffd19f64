/** Start times of the stages of one request, in two parallel arrays to keep the cost low. */

/** On Workers the clock advances only with I/O, so a stage without I/O takes 0. */
export class Timeline {
  readonly #now: () => number
  readonly #stages: string[] = []
  readonly #enteredMs: number[] = []

  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * Starts a stage, which ends the previous one. `isSameMoment`: nothing was awaited since the
   * previous stage started, so the clock is not read.
   */
  enter(stage: string, isSameMoment?: boolean): void {
    const times = this.#enteredMs
    const lastMs = isSameMoment === true ? times[times.length - 1] : undefined
    this.#stages.push(stage)
    times.push(lastMs ?? this.#now())
  }

  /** For a refused request, the stage that refused. */
  current(): string | undefined {
    return this.#stages.at(-1)
  }

  /** Returns milliseconds by stage, added up for a repeated stage. The last one ends at `endMs`. */
  durations(endMs: number): Record<string, number> {
    const durationsMs: Record<string, number> = {}
    const times = this.#enteredMs
    for (let at = 0; at < times.length; at++) {
      const stage = this.#stages[at] as string
      const tookMs = (times[at + 1] ?? endMs) - (times[at] as number)
      durationsMs[stage] = (durationsMs[stage] ?? 0) + tookMs
    }
    return durationsMs
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
