/** The signature set of a category: rules with scores, and one scan for all of them. */
import type { SignatureCategory } from '../../problems/reasons.ts'

/** Score that reaches the default threshold alone. */
export const DECISIVE = 5
/** Score of a match that is suspicious only together with another one. */
export const NOTABLE = 3
/** Score of a match that is common in harmless text. */
export const FAINT = 2

export interface SignatureSet {
  readonly category: SignatureCategory
  /** The scores of the rules, by the name of the rule within its category. */
  readonly scores: Readonly<Record<string, number>>
  /**
   * Returns the rules that a text matches, with the bits of {@link bitsOf}. Takes time linear in the
   * length of the text, for any text.
   */
  scan(text: string): number
}

/** Returns the bit of each rule: bit n for the rule at index n. */
export function bitsOf<Rule extends string>(
  scores: Readonly<Record<Rule, number>>,
): Readonly<Record<Rule, number>> {
  const rules = Object.keys(scores) as Rule[]
  return Object.fromEntries(rules.map((rule, index) => [rule, 1 << index])) as Record<Rule, number>
}

/** Returns a pattern that matches any of the alternatives, each a source of a regular expression. */
export function anyOf(flags: string, ...alternatives: readonly string[]): RegExp {
  return new RegExp(alternatives.join('|'), flags)
}

/** Returns the source of a group of alternatives, from texts in which spaces separate them. */
export function oneOf(...texts: readonly string[]): string {
  return `(?:${texts.join(' ').replaceAll(' ', '|')})`
}

/** Returns the words of texts in which spaces separate them. */
export function wordsOf(...texts: readonly string[]): ReadonlySet<string> {
  return new Set(texts.join(' ').split(' '))
}

/** Returns the place after the text that a sticky pattern matches at `at`; `at` without a match. */
export function endOfMatch(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}
