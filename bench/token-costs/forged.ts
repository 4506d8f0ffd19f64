/** Tokens that nobody may take. */

/** How far before the end: the last characters of a signature hold bits that do not count. */
const FROM_END = 10

/** `text` with another character in its signature, or in what makes it unguessable. */
export function forged(text: string): string {
  const at = text.length - FROM_END
  return text.slice(0, at) + (text[at] === 'a' ? 'b' : 'a') + text.slice(at + 1)
}
