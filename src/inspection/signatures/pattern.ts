/** Long patterns, written so that they can be read. */

/** A pattern of alternatives, each the source of a regular expression. */
export function anyOf(flags: string, ...alternatives: readonly string[]): RegExp {
  return new RegExp(alternatives.join('|'), flags)
}

/** The source of a group of alternatives, out of a text in which blanks separate them. */
export function oneOf(...texts: readonly string[]): string {
  return `(?:${texts.join(' ').replaceAll(' ', '|')})`
}
