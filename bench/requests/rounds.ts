/** Measures several things in turn in rounds, so that noise affects all of them equally. */
import { median, ratio, rounded } from '../statistics.ts'

/** Measures each of `names` once per round, in order. Returns the rounds of each. */
export async function inTurn<Name extends string, Result>(
  names: readonly Name[],
  rounds: number,
  measure: (name: Name, round: number) => Promise<Result>,
): Promise<Readonly<Record<Name, readonly Result[]>>> {
  const done = Object.fromEntries(names.map((name) => [name, [] as Result[]]))
  for (let round = 1; round <= rounds; round++) {
    for (const name of names) done[name]?.push(await measure(name, round))
  }
  return done as unknown as Record<Name, readonly Result[]>
}

/** Returns the median of one number over rounds. Throws a `RangeError` for no rounds. */
export function medianOf<Key extends string>(
  rounds: readonly Readonly<Record<Key, number>>[],
  key: Key,
  digits = 2,
): number {
  return rounded(median(rounds.map((round) => round[key])), digits)
}

/** Returns the median of the ratios of each round to the same round of another. */
export function ratioOf<Key extends string>(
  rounds: readonly Readonly<Record<Key, number>>[],
  base: readonly Readonly<Record<Key, number>>[],
  key: Key,
): number {
  return rounded(
    median(rounds.map((round, index) => ratio(round[key], base[index]?.[key] ?? 0))),
    3,
  )
}

/** Returns `0 of 182,204`. */
export function noneOf(count: number): string {
  return `0 of ${count.toLocaleString('en')}`
}

/** Returns a note if other processes kept the machine busy. */
export function noiseNotes(otherCores: readonly number[]): string[] {
  const most = Math.max(0, ...otherCores)
  return most < 0.2
    ? []
    : [`Processes of others used up to ${most.toFixed(1)} cores meanwhile: latencies suffer most.`]
}

/** Returns the sum over all rounds. */
export const sumOf = <Item>(items: readonly Item[], of: (item: Item) => number): number =>
  items.reduce((sum, item) => sum + of(item), 0)
