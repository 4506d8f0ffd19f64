/** Text that is safe to print: what a terminal would obey is shown, not obeyed. */

/** Controls, formats (bidirectional ones too), lone surrogates, and separators that break lines. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
const HEX = 16
const HEX_DIGITS = 4
const MINUTE_SECONDS = 60
const HOUR_SECONDS = 3_600

/** The text in one line, with every unsafe character as `\u{1b}`. */
export function visible(text: string): string {
  return text.replace(UNSAFE, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(HEX)}}`)
}

/** Compact JSON in which every unsafe character is an escape: the same value to any parser. */
export function visibleJson(value: unknown): string {
  return JSON.stringify(value).replace(UNSAFE, (char) =>
    Array.from({ length: char.length }, (_, index) =>
      char.charCodeAt(index).toString(HEX).padStart(HEX_DIGITS, '0'),
    )
      .map((digits) => `\\u${digits}`)
      .join(''),
  )
}

/** A value of the gateway's JSON as a person reads it: lists with spaces, nothing as `-`. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) {
    return value.length === 0 ? '-' : value.map(cell).join(' ')
  }
  return visible(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

/** `1 row`, `2 rows`: nouns whose plural ends in s. */
export const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`

/** Seconds as a person says them, rounded up: `45 s`, `60 min`, `24 h`. */
export function duration(seconds: number): string {
  if (seconds <= 2 * MINUTE_SECONDS) return `${seconds} s`
  if (seconds <= 2 * HOUR_SECONDS) return `${Math.ceil(seconds / MINUTE_SECONDS)} min`
  return `${Math.ceil(seconds / HOUR_SECONDS)} h`
}

/** Names of columns as a person reads them: `actor.subject` is `ACTOR SUBJECT`. */
const headingOf = (columns: readonly string[]): readonly string[] =>
  columns.map((name) => name.replace(/[A-Z]/g, ' $&').replaceAll('.', ' ').toUpperCase())

/** Rows under a heading, columns aligned. A column is the name of a member. */
export function table(rows: readonly object[], columns: readonly string[]): string {
  return aligned([
    headingOf(columns),
    ...rows.map((row) => columns.map((name) => cell(memberOf(row, name)))),
  ])
}

/** Characters that a column is wide at least, by its name. */
export type Widths = Readonly<Record<string, number>>

/** One row of a table whose other rows are not there yet: what is wider than expected moves the rest. */
export function line(row: object, columns: readonly string[], widths: Widths = {}): string {
  return padded(
    columns.map((name) => cell(memberOf(row, name))),
    columns.map((name) => widths[name] ?? 0),
  )
}

/** The heading of such rows. */
export function headingLine(columns: readonly string[], widths: Widths): string {
  return padded(
    headingOf(columns),
    columns.map((name) => widths[name] ?? 0),
  )
}

/** Members of an object, one a line, those without a value left out. */
export function record(value: object): string {
  return aligned(
    Object.entries(value)
      .filter(([, member]) => member !== undefined && member !== null)
      .map(([name, member]) => [name, cell(member)]),
  )
}

/** A member of the object itself; `a.b` is a member of a member. */
function memberOf(row: object, name: string): unknown {
  return name
    .split('.')
    .reduce<unknown>(
      (value, part) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, part)
          ? (value as Record<string, unknown>)[part]
          : undefined,
      row,
    )
}

function aligned(lines: readonly (readonly string[])[]): string {
  const widths: number[] = []
  for (const line of lines)
    for (const [index, text] of line.entries())
      widths[index] = Math.max(widths[index] ?? 0, text.length)
  return lines.map((line) => padded(line, widths)).join('\n')
}

const padded = (texts: readonly string[], widths: readonly number[]): string =>
  texts
    .map((text, index) => text.padEnd(widths[index] ?? 0))
    .join('  ')
    .trimEnd()
