/** Shows text of others to people, so that what they read is all that there is. Pure: no I/O. */

/**
 * Control and format characters (bidirectional ones and tags too), lone surrogates, line separators, and characters
 * without a shape, such as variation selectors and blanks that are letters.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{DI}\u2800\u{1D159}]/gu

/** Returns the text on one line, with every unsafe character replaced by what `replacement` returns for it. */
export const escapeUnsafe = (text: string, replacement: (char: string) => string): string =>
  text.replace(UNSAFE, replacement)

/** Returns the text on one line, with every unsafe character escaped as `\u{1b}`. */
export const visible = (text: string): string =>
  escapeUnsafe(text, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`)
