/** Builds long regular expressions from readable parts. */

/**
 * Returns a pattern that matches any of the alternatives, each the source of a regular expression.
 */
export function anyOf(flags: string, ...alternatives: readonly string[]): RegExp {
  return new RegExp(alternatives.join('|'), flags)
}

/** Returns the source of a group of alternatives, from texts in which spaces separate them. */
export function oneOf(...texts: readonly string[]): string {
  return `(?:${texts.join(' ').replaceAll(' ', '|')})`
}
