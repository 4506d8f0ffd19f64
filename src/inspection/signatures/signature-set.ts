/** The signature set of a category: rules with scores, and one scan for all of them. */
import type { SignatureCategory } from '../../problems/reasons.ts'

/** Score that reaches the default threshold alone. */
export const DECISIVE = 5
/** Score of a match that is suspicious only together with another one. */
export const NOTABLE = 3
/** Score of a match that is common in harmless text. */
export const FAINT = 2

/** A rule's name within its category, and its score. */
export type SignatureRule = readonly [name: string, score: number]

export interface SignatureSet {
  readonly category: SignatureCategory
  readonly rules: readonly SignatureRule[]
  /**
   * Returns the rules that a text matches: bit n for the rule at index n. Takes time linear in the
   * length of the text, for any text.
   */
  scan(text: string): number
}

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
