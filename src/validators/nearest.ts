/** Suggestions for misspelled names. */

/** Returns the name that differs least, by at most a third of the characters. Undefined: none does. */
export function nearestTo(given: string, names: readonly string[]): string | undefined {
  let nearest: string | undefined
  let least = Math.max(1, Math.floor(given.length / 3)) + 1
  for (const name of names) {
    const distance = distanceOf(given.toLowerCase(), name.toLowerCase())
    if (distance >= least) continue
    least = distance
    nearest = name
  }
  return nearest
}

/** Returns the number of characters to insert, delete, replace or swap (optimal string alignment). */
function distanceOf(one: string, another: string): number {
  let before: number[] = []
  let last = Array.from({ length: another.length + 1 }, (_, at) => at)
  for (let i = 1; i <= one.length; i++) {
    const row = [i]
    for (let j = 1; j <= another.length; j++) {
      const isSame = one[i - 1] === another[j - 1]
      const isSwapped =
        i > 1 && j > 1 && one[i - 1] === another[j - 2] && one[i - 2] === another[j - 1]
      row.push(
        Math.min(
          cell(last, j) + 1,
          cell(row, j - 1) + 1,
          cell(last, j - 1) + (isSame ? 0 : 1),
          isSwapped ? cell(before, j - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      )
    }
    before = last
    last = row
  }
  return cell(last, another.length)
}

const cell = (row: readonly number[], at: number): number => row[at] ?? Number.POSITIVE_INFINITY
