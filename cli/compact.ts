/**
 * Tables for the width of a terminal. The rule: a file, a pipe and `--wide` get every column, and nothing is cut. A
 * terminal gets the columns that fit. Ids are complete there or left out, because a cut id cannot be copied; other text may be
 * cut at its end, which `…` shows.
 */
import stringWidth from 'string-width'
import { cell, memberOf, type Style, table } from './text.ts'

/** Columns that are never left out: what names a row, and what most people look for. */
const ESSENTIAL = new Set([
  ...['id', 'clientId', 'name', 'kind', 'value', 'limit', 'requests', 'status', 'subject', 'plan'],
  ...['by', 'preset', 'provider', 'time', 'method', 'route', 'caller', 'reason', 'level', 'check'],
])
/** Columns that are never cut. */
const WHOLE =
  /^(id|.*Id|kid|prefix|kind|by|status|limit|requests|windowSeconds|time|method|level|mode|plan|preset|\d+)$/
const TIME = /At$|^(since|until)$/
const LEAST_WIDTH = 8
const GAP_WIDTH = 2
const DAY_MS = 86_400_000

/**
 * Formats rows as a table that is at most as wide as the terminal, if the columns that are never left out fit. Columns
 * without any value are left out.
 */
export function compactTable(
  rows: readonly object[],
  columns: readonly string[],
  style: Style,
  nowMs = Date.now(),
) {
  const shown = rows.map((row) =>
    Object.fromEntries(columns.map((name) => [name, shownValue(row, name, nowMs)])),
  )
  const used = columns.filter((name) => shown.some((row) => row[name] !== cell(undefined)))
  const widthOf = (name: string) =>
    Math.max(heading(name).length, ...shown.map((row) => stringWidth(row[name] ?? '')))
  const full = new Map(used.map((name) => [name, widthOf(name)]))
  const least = (name: string) => {
    const width = full.get(name) ?? 0
    return isWhole(name) ? width : Math.min(width, Math.max(LEAST_WIDTH, heading(name).length))
  }
  const room = (names: readonly string[]) => style.width - GAP_WIDTH * (names.length - 1)
  let kept = used
  for (const name of used.toReversed()) {
    if (total(kept, least) <= room(kept)) break
    if (!ESSENTIAL.has(name) && !/^\d+$/.test(name)) kept = kept.filter((other) => other !== name)
  }
  const widths = sharedWidths(kept, full, least, room(kept))
  const cells = shown.map((row) =>
    Object.fromEntries(kept.map((name) => [name, cut(row[name] ?? '', widths.get(name) ?? 0)])),
  )
  return {
    text: table(cells, kept, style),
    /** The names of the columns that have values, and that are not shown. */
    hidden: used.filter((name) => !kept.includes(name)),
  }
}

/** Returns the width of each column: those that may be cut share what the others leave. */
function sharedWidths(
  names: readonly string[],
  full: ReadonlyMap<string, number>,
  least: (name: string) => number,
  room: number,
): ReadonlyMap<string, number> {
  const widthsBelow = (cap: number) =>
    new Map(names.map((name) => [name, Math.max(least(name), Math.min(full.get(name) ?? 0, cap))]))
  let cap = Math.max(0, ...full.values())
  while (cap > LEAST_WIDTH && total(names, (name) => widthsBelow(cap).get(name) ?? 0) > room)
    cap -= 1
  return widthsBelow(cap)
}

const total = (names: readonly string[], widthOf: (name: string) => number): number =>
  names.reduce((sum, name) => sum + widthOf(name), 0)

const isWhole = (name: string) => WHOLE.test(name) || TIME.test(name)
const heading = (name: string) => name.replace(/[A-Z]/g, ' $&')

function shownValue(row: object, name: string, nowMs: number): string {
  const value = memberOf(row, name)
  return TIME.test(name) && typeof value === 'string' ? shortTime(value, nowMs) : cell(value)
}

/** Returns a time in UTC: `14:32:55` within a day of now, or else `2026-11-27 14:32`. Other text stays. */
export function shortTime(text: string, nowMs: number): string {
  const at = Date.parse(text)
  if (Number.isNaN(at)) return cell(text)
  const iso = new Date(at).toISOString()
  const isNear = Math.abs(at - nowMs) < DAY_MS && iso.slice(0, 10) === utcDay(nowMs)
  return isNear ? iso.slice(11, 19) : `${iso.slice(0, 10)} ${iso.slice(11, 16)}`
}

const utcDay = (ms: number) => new Date(ms).toISOString().slice(0, 10)

/** Cuts the end of a text that is wider than `width`. */
export function cut(text: string, width: number): string {
  if (stringWidth(text) <= width) return text
  let kept = ''
  for (const character of text) {
    if (stringWidth(kept + character) >= width) break
    kept += character
  }
  return `${kept}…`
}
