/**
 * Formats text for a terminal. Escapes control characters so that the terminal does not execute
 * them.
 */

/** Control and format characters (bidirectional ones too), lone surrogates, and line separators. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
const HEX = 16
const HEX_DIGITS = 4
const MINUTE_SECONDS = 60
const HOUR_SECONDS = 3_600

/** Returns the text on one line, with every unsafe character escaped as `\u{1b}`. */
export function visible(text: string): string {
  return text.replace(UNSAFE, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(HEX)}}`)
}

/** Returns compact JSON with every unsafe character escaped. It parses to the same value. */
export function visibleJson(value: unknown): string {
  return JSON.stringify(value).replace(UNSAFE, (char) =>
    Array.from({ length: char.length }, (_, index) =>
      char.charCodeAt(index).toString(HEX).padStart(HEX_DIGITS, '0'),
    )
      .map((digits) => `\\u${digits}`)
      .join(''),
  )
}

/** Formats a JSON value for people: lists are separated by spaces, and an empty value is `-`. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) {
    return value.length === 0 ? '-' : value.map(cell).join(' ')
  }
  return visible(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

/** Returns a count and its noun: `1 row`, `2 rows`. For nouns with a plural in s. */
export const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`

/** Formats seconds for people: `45 s`, `60 min`, `24 h`. Minutes and hours are rounded up. */
export function duration(seconds: number): string {
  if (seconds <= 2 * MINUTE_SECONDS) return `${seconds} s`
  if (seconds <= 2 * HOUR_SECONDS) return `${Math.ceil(seconds / MINUTE_SECONDS)} min`
  return `${Math.ceil(seconds / HOUR_SECONDS)} h`
}

/** Converts member names to column headings: `actor.subject` becomes `ACTOR SUBJECT`. */
const headingOf = (columns: readonly string[]): readonly string[] =>
  columns.map((name) => name.replace(/[A-Z]/g, ' $&').replaceAll('.', ' ').toUpperCase())

/** Formats rows as a table with a heading and aligned columns. A column is a member name. */
export function table(rows: readonly object[], columns: readonly string[]): string {
  return aligned([
    headingOf(columns),
    ...rows.map((row) => columns.map((name) => cell(memberOf(row, name)))),
  ])
}

/** Minimum width of each column in characters, by column name. */
export type Widths = Readonly<Record<string, number>>

/**
 * Formats one row of a table that is printed row by row. A cell that exceeds its width shifts the
 * rest of the row.
 */
export function line(row: object, columns: readonly string[], widths: Widths = {}): string {
  return padded(
    columns.map((name) => cell(memberOf(row, name))),
    columns.map((name) => widths[name] ?? 0),
  )
}

/** Formats the heading of rows that {@link line} formats. */
export function headingLine(columns: readonly string[], widths: Widths): string {
  return padded(
    headingOf(columns),
    columns.map((name) => widths[name] ?? 0),
  )
}

/** Formats the members of an object, one on each line. Omits members without a value. */
export function record(value: object): string {
  return aligned(
    Object.entries(value)
      .filter(([, member]) => member !== undefined && member !== null)
      .map(([name, member]) => [name, cell(member)]),
  )
}

/** Returns an own member of an object by name. `a.b` is member `b` of member `a`. */
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
