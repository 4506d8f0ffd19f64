/** Differences in time between actions, measured side by side in one process. */

export interface MedianDifferences<Name extends string> {
  /** Typical difference between the baseline and the baseline again, without its sign. */
  readonly noise: number
  /** Between each other action and the baseline, as a part of the baseline's median. */
  readonly differences: Readonly<Record<Name, number>>
}

/** A burst of other work on the machine spoils a few windows, and not the median of all. */
const WINDOWS = 9

/**
 * Measures how the median duration of each action differs from that of `baseline`.
 *
 * Measures in windows of so many rounds. In each round every action runs once, in random order, so
 * that whatever slows the machine down slows all of them down. The baseline runs twice a round: the
 * difference between its own two series is noise. Each figure is the median of the figures of all
 * windows.
 */
export async function medianDifferences<Name extends string>(
  baseline: () => Promise<unknown>,
  actions: Readonly<Record<Name, () => Promise<unknown>>>,
  rounds: number,
): Promise<MedianDifferences<Name>> {
  const names = Object.keys(actions) as Name[]
  const runs = [baseline, baseline, ...names.map((name) => actions[name])]
  // Compiles the code and fills its caches.
  await durationsOf(runs, rounds)

  const noise: number[] = []
  const differences: number[][] = names.map(() => [])
  for (let window = 0; window < WINDOWS; window++) {
    const [first = [], second = [], ...others] = await durationsOf(runs, rounds)
    const base = median([...first, ...second])
    noise.push(Math.abs(median(second) / median(first) - 1))
    for (const [at, durations] of others.entries())
      differences[at]?.push(median(durations) / base - 1)
  }
  const figures = names.map((name, at) => [name, median(differences[at] ?? [])])
  return { noise: median(noise), differences: Object.fromEntries(figures) }
}

/** Milliseconds that each action took, round by round. */
async function durationsOf(
  runs: readonly (() => Promise<unknown>)[],
  rounds: number,
): Promise<readonly (readonly number[])[]> {
  const series = runs.map((run) => ({ run, durations: [] as number[], rank: 0 }))
  for (let round = 0; round < rounds; round++) {
    for (const one of series) one.rank = Math.random()
    for (const { run, durations } of series.toSorted((a, b) => a.rank - b.rank)) {
      const started = performance.now()
      await run()
      durations.push(performance.now() - started)
    }
  }
  return series.map(({ durations }) => durations)
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? Number.NaN
}
