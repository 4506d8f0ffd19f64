/**
 * Formats text for a terminal. Escapes control characters so that the terminal does not execute
 * them.
 */

import Table from 'cli-table3'
import { createColors } from 'picocolors'
import stringWidth from 'string-width'
import { escapeUnsafe, visible } from '../src/problems/visible.ts'

export { visible }

const HEX = 16
const HEX_DIGITS = 4
/** The text of a cell without a value. */
const NOTHING = '-'
/** Between two columns. */
const GAP = '  '
const MINUTE_SECONDS = 60
const HOUR_SECONDS = 3_600

/** Returns compact JSON with every unsafe character escaped. It parses to the same value. */
export function visibleJson(value: unknown): string {
  return escapeUnsafe(JSON.stringify(value), (char) =>
    Array.from({ length: char.length }, (_, index) =>
      char.charCodeAt(index).toString(HEX).padStart(HEX_DIGITS, '0'),
    )
      .map((digits) => `\\u${digits}`)
      .join(''),
  )
}

/** Formats a JSON value for people: lists are separated by spaces, and an empty value is `-`. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return NOTHING
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) {
    return value.length === 0 ? NOTHING : value.map(cell).join(' ')
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

/** How to show text. */
export interface Style {
  /** Columns of the terminal; infinite for a file or a pipe. */
  readonly width: number
  readonly colors: ReturnType<typeof createColors>
}

/** Text without colors, in lines of any length. */
const PLAIN: Style = { width: Number.POSITIVE_INFINITY, colors: createColors(false) }

/** Colors of the values of a member. */
const PAINTS: Readonly<
  Record<string, Readonly<Record<string, 'green' | 'yellow' | 'red' | 'dim'>>>
> = {
  decision: { allow: 'green', deny: 'red', error: 'yellow' },
  outcome: { passed: 'green', answered: 'green', refused: 'red', failed: 'yellow' },
  level: { ok: 'green', warning: 'yellow', error: 'red', 'not checked': 'dim' },
}

/** Returns the color of the status of a response. */
const colorOfStatus = (text: string) =>
  /^[23]\d\d$/.test(text)
    ? 'green'
    : /^4\d\d$/.test(text)
      ? 'red'
      : /^5\d\d$/.test(text)
        ? 'yellow'
        : undefined

/** Colors the text of a cell by the name of its member. */
function painted(name: string, text: string, { colors }: Style): string {
  const color = PAINTS[name]?.[text] ?? (name === 'status' ? colorOfStatus(text) : undefined)
  return color === undefined ? text : colors[color](text)
}

/**
 * Formats rows as a table with a heading and aligned columns. A column is a member name. If the
 * table is wider than the terminal, cells wrap between words. If that is not enough, each row is a
 * block with one line for each member, because a broken id cannot be copied.
 */
export function table(
  rows: readonly object[],
  columns: readonly string[],
  style: Style = PLAIN,
): string {
  const headings = headingOf(columns)
  const cells = rows.map((row) => columns.map((name) => cell(memberOf(row, name))))
  const widths = fittingWidths([headings, ...cells], style.width)
  if (widths === undefined) {
    const blocks = cells.map((texts) =>
      texts.flatMap((text, index) => {
        const name = columns[index] ?? ''
        return text === NOTHING ? [] : [[style.colors.bold(name), painted(name, text, style)]]
      }),
    )
    return blocks.map((block) => aligned(block)).join('\n\n')
  }
  const body = cells.map((texts) =>
    texts.map((text, index) => painted(columns[index] ?? '', text, style)),
  )
  return aligned([headings.map((text) => style.colors.bold(text)), ...body], widths)
}

/** Minimum width of each column in characters, by column name. */
export type Widths = Readonly<Record<string, number>>

/**
 * Formats one row of a table that is printed row by row. A cell that exceeds its width shifts the
 * rest of the row.
 */
export function line(
  row: object,
  columns: readonly string[],
  widths: Widths = {},
  style: Style = PLAIN,
): string {
  const cells = columns.map((name) => {
    const text = cell(memberOf(row, name))
    return painted(name, text, style) + padding(text, widths[name])
  })
  return cells.join(GAP).trimEnd()
}

/** Formats the heading of rows that {@link line} formats. */
export function headingLine(
  columns: readonly string[],
  widths: Widths,
  style: Style = PLAIN,
): string {
  const headings = headingOf(columns).map(
    (text, index) => style.colors.bold(text) + padding(text, widths[columns[index] ?? '']),
  )
  return headings.join(GAP).trimEnd()
}

const padding = (text: string, width = 0): string =>
  ' '.repeat(Math.max(0, width - stringWidth(text)))

/** Formats the members of an object, one on each line. Omits members without a value. */
export function record(value: object, style: Style = PLAIN): string {
  return aligned(
    Object.entries(value)
      .filter(([, member]) => member !== undefined && member !== null)
      .map(([name, member]) => [style.colors.bold(name), painted(name, cell(member), style)]),
  )
}

/** Returns an own member of an object by name. `a.b` is member `b` of member `a`. */
export function memberOf(row: object, name: string): unknown {
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

/**
 * Returns the width of each column so that a table is at most `available` wide and no word is
 * broken. Returns an empty list if the table fits as it is, and undefined if it cannot fit.
 */
function fittingWidths(
  lines: readonly (readonly string[])[],
  available: number,
): number[] | undefined {
  const columns = lines[0]?.map((_, index) => lines.map((texts) => texts[index] ?? '')) ?? []
  const full = columns.map((texts) => Math.max(...texts.map(stringWidth)))
  const least = columns.map((texts) =>
    Math.max(...texts.flatMap((text) => text.split(' ')).map(stringWidth)),
  )
  const room = available - GAP.length * (columns.length - 1)
  if (sum(full) <= room) return []
  if (sum(least) > room) return undefined
  // The widest columns shrink to the same width, and narrow ones keep theirs.
  const widthsBelow = (cap: number) =>
    full.map((width, index) => Math.max(least[index] ?? 0, Math.min(width, cap)))
  let cap = Math.max(...full)
  while (sum(widthsBelow(cap)) > room) cap -= 1
  return widthsBelow(cap)
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

/** A table without borders. */
const NO_BORDERS = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: GAP,
}

/** Aligns columns. A column with a width wraps between words. */
function aligned(lines: readonly (readonly string[])[], widths: readonly number[] = []): string {
  const layout = new Table({
    chars: NO_BORDERS,
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
    colWidths: [...widths],
    wordWrap: true,
  })
  layout.push(...lines.map((texts) => [...texts]))
  return layout
    .toString()
    .split('\n')
    .map((text) => text.trimEnd())
    .join('\n')
}
