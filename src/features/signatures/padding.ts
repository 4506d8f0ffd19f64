/** Removes what attacks insert so that their parts are far from each other. */

/** A text without one of these has no padding. */
const PADDING = /\s{3}|([;|&"'`(),+~!^<>=/-])\1\1|\/\*/
const BLANKS = /(?<=[^\S\n])[^\S\n]{1,9999}/g
const AROUND_NEWLINES = /[^\S\n](?=\n)|(?<=\n)[^\S\n]/g
/** A third character of a kind. Two of a kind have a meaning of their own, such as `--` and `||`. */
const REPEATED = /([;|&"'`(),+~!^<>=/-])(?<=\1\1\1)|(?<=\n)\n/g

/**
 * Returns the text with comments of SQL and JavaScript as one space, with white space as one space
 * or newline, and with at most two equal separators in a row; undefined if this changes nothing.
 */
export function withoutPadding(text: string): string | undefined {
  if (!PADDING.test(text)) return undefined
  const compact = withoutComments(text)
    .replace(BLANKS, '')
    .replace(AROUND_NEWLINES, '')
    .replace(REPEATED, '')
  return compact === text ? undefined : compact
}

function withoutComments(text: string): string {
  let compact = ''
  let at = 0
  let open = text.indexOf('/*')
  while (open !== -1) {
    const close = text.indexOf('*/', open + 2)
    if (close === -1) break
    compact += `${text.slice(at, open)} `
    at = close + 2
    open = text.indexOf('/*', at)
  }
  return compact + text.slice(at)
}
