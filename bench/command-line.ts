/** Parses values of command-line options. Each function throws an `Error` of one line. */

/** Returns the name if it is in `names`. */
export function oneOf<Name extends string>(
  option: string,
  value: string,
  names: readonly Name[],
): Name {
  const found = names.find((name) => name === value)
  if (found === undefined) throw new Error(`${option} must be one of ${names.join(', ')}`)
  return found
}

export const someOf = <Name extends string>(
  option: string,
  values: string,
  names: readonly Name[],
): readonly Name[] => values.split(',').map((value) => oneOf(option, value.trim(), names))

/** Parses a decimal number with at most three decimal places. */
export function number(
  option: string,
  given: string | number,
  least: number,
  most: number,
): number {
  const value = /^\d{1,7}(\.\d{1,3})?$/.test(String(given)) ? Number(given) : Number.NaN
  if (!(value >= least && value <= most))
    throw new Error(`${option} must be a number from ${least} to ${most}`)
  return value
}

/** Like `number`, for integers. */
export function whole(option: string, given: string | number, least: number, most: number): number {
  const value = number(option, given, least, most)
  if (!Number.isInteger(value)) throw new Error(`${option} must be a whole number`)
  return value
}

const MAX_SEED = 2 ** 32 - 1

/** Parses the option `--seed` of random numbers. */
export function seedOf(text: string): number {
  const seed = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (!(seed <= MAX_SEED)) throw new Error(`--seed must be a whole number from 0 to ${MAX_SEED}`)
  return seed
}

/** Formats names for the help of an option, in indented lines of four. */
export function columns(names: readonly string[]): string {
  const lines: string[] = []
  for (let at = 0; at < names.length; at += 4) lines.push(names.slice(at, at + 4).join(', '))
  return lines.join(',\n                     ')
}
