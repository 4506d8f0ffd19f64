/** Texts of any characters as the value of a header. */

/** Visible ASCII without the percent sign: needs no encoding in a header. */
const PLAIN = /^[!-$&-~]*$/
const NOT_PLAIN = /[^!-$&-~]+/g

/** Percent-encodes everything but visible ASCII, and `%`. `decodeURIComponent` decodes it. */
export function headerWord(value: string): string {
  return PLAIN.test(value)
    ? value
    : value.toWellFormed().replace(NOT_PLAIN, (run) => encodeURIComponent(run))
}

/** A {@link headerWord} of a comma-separated list: split at commas, then decode. */
export const listWord = (value: string): string => headerWord(value).replaceAll(',', '%2C')
