/** Suggestions for misspelled names, in all messages. */

/**
 * Returns `did you mean "orders"?` with the known name that differs least from the given one, by at most a
 * third of its characters. Undefined: none does.
 */
export function didYouMean(given: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined
  let least = Math.max(1, Math.floor(given.length / 3)) + 1
  for (const name of known) {
    const distance = measureDistance(given.toLowerCase(), name.toLowerCase())
    if (distance >= least) continue
    least = distance
    nearest = name
  }
  return nearest === undefined ? undefined : `did you mean "${nearest}"?`
}

/** Returns a message, and the suggestion if there is one. */
export function withSuggestion(message: string, given: string, known: readonly string[]): string {
  const suggestion = didYouMean(given, known)
  return suggestion === undefined ? message : `${message}; ${suggestion}`
}

/** Returns the number of characters to insert, delete, replace or swap (optimal string alignment). */
function measureDistance(one: string, another: string): number {
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
