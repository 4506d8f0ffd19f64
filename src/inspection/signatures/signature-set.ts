/** What the signatures of a category are: rules with scores, and one scan that finds them all. */
import type { SignatureCategory } from '../../errors.ts'

/** The score that is enough by itself, unless a route says otherwise. */
export const DECISIVE = 5
/** Suspicious beside something else. */
export const NOTABLE = 3
/** Common in harmless text, too. */
export const FAINT = 2

/** A rule's name within its category, and its score. */
export type SignatureRule = readonly [name: string, score: number]

export interface SignatureSet {
  readonly category: SignatureCategory
  readonly rules: readonly SignatureRule[]
  /**
   * The rules that a text matches: bit n for the rule at index n. Takes time linear in the text's
   * length, whatever stands in it.
   */
  scan(text: string): number
}
