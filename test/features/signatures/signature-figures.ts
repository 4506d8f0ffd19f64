/** Measures the signatures on attacks and on harmless texts, at the default threshold. */
import { DEFAULT_SIGNATURES } from '../../../src/features/signatures/definition.ts'
import { createVerdictReader, scan } from '../../../src/features/signatures/scanner.ts'
import { createVerdictCache } from '../../../src/features/signatures/verdict-cache.ts'
import { ATTACKS } from './attacks.ts'
import { ABOUT_ATTACKS, HARMLESS } from './harmless-texts.ts'
import { PROGRAMMING } from './programming-texts.ts'

const cache = createVerdictCache()
const signaturesIn = createVerdictReader(DEFAULT_SIGNATURES)

/** Returns the rule for which an enforcing route would refuse a value. */
export function signatureOf(text: string) {
  return signaturesIn(scan(text, cache))[0]
}

export interface Share {
  readonly texts: number
  readonly refused: number
}

/** Counts the texts that are refused for any reason. */
export function shareOf(texts: readonly string[]): Share {
  const refused = texts.filter((text) => signatureOf(text) !== undefined)
  return { texts: texts.length, refused: refused.length }
}

const sharesOf = (lists: Readonly<Record<string, readonly string[]>>) =>
  Object.fromEntries(Object.entries(lists).map(([name, texts]) => [name, shareOf(texts)]))

/** Returns all figures that this repository and its packages provide. */
export function figures() {
  return {
    attacks: sharesOf(ATTACKS),
    harmless: shareOf(HARMLESS),
    aboutAttacks: shareOf(ABOUT_ATTACKS),
    programming: sharesOf(PROGRAMMING),
  }
}
